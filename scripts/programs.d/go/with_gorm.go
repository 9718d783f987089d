// GORM: AutoMigrate, associations, queries, hooks of time, transactions, its migrator, its errors.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Author struct {
	gorm.Model
	Name  string `gorm:"size:50;not null;uniqueIndex"`
	Books []Book `gorm:"constraint:OnDelete:CASCADE"`
}

type Book struct {
	ID       uint64
	AuthorID uint
	Title    string  `gorm:"index:by_title,priority:2"`
	Price    float64 `gorm:"type:numeric(8,2);default:0;check:a_price,price >= 0;index:by_title,priority:1,sort:desc"`
	Meta     string  `gorm:"type:jsonb;default:'{}'"`
	Sold     *bool
	Bytes    []byte
	Out      time.Time `gorm:"type:date;comment:when it came out"`
	Tags     []Tag     `gorm:"many2many:book_tags"`
}

type Tag struct {
	ID   uint
	Slug string
}

// Author, later.
type Later struct {
	gorm.Model
	Name string `gorm:"size:80;not null;default:nobody"`
	Age  int16
}

func (Later) TableName() string { return "authors" }

var db *gorm.DB

func main() {
	fmt.Println("version", versionOf("gorm.io/gorm"))
	var err error
	options := &gorm.Config{Logger: logger.Default.LogMode(logger.Silent), TranslateError: true}
	if db, err = gorm.Open(postgres.Open(""), options); err != nil {
		fmt.Println("no connects:", err)
		os.Exit(1)
	}
	fmt.Println("ok connects")
	checks := []struct {
		name string
		run  func() error
	}{
		{"migrates", func() error { return db.AutoMigrate(&Author{}, &Book{}, &Tag{}) }},
		{"migrates_again", func() error { return db.AutoMigrate(&Author{}, &Book{}, &Tag{}) }},
		{"rows", rows}, {"queries", queries}, {"preloads", preloads}, {"changes", changes}, {"upserts", upserts}, {"batches", batches},
		{"transactions", transactions}, {"locks", locks}, {"errors", mistakes}, {"raw", raw}, {"deletes", deletes},
		{"migrates_changes", func() error { return db.AutoMigrate(&Later{}) }}, {"migrator", migrator}, {"column_types", columnTypes}, {"drops", drops},
	}
	for _, one := range checks {
		check(one.name, one.run())
	}
}

func rows() error {
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	ann := Author{Name: "Ann", Books: []Book{
		{Title: "A", Price: 1.5, Meta: `{"pages": 3}`, Bytes: []byte{0, 255}, Out: day, Tags: []Tag{{Slug: "x"}, {Slug: "y"}}}, {Title: "B", Out: day},
	}}
	err := db.Create(&ann).Error
	var found Book
	return all(err, same(ann.ID, uint(1)), db.First(&found, "title = ?", "A").Error, same(found.Out.UTC(), day), same(found.Bytes, []byte{0, 255}),
		same([]any{found.Price, found.Meta, found.Sold}, []any{1.5, `{"pages": 3}`, (*bool)(nil)}), db.Create(&Author{Name: "Bob"}).Error)
}

func queries() error {
	var n int64
	var names []string
	var sums []struct {
		Name string
		N    int
		Sum  float64
	}
	dear := db.Model(&Book{}).Select("author_id").Where("price > ?", 1)
	return all(db.Model(&Book{}).Where("title LIKE ?", "A%").Or(map[string]any{"price": 100}).Count(&n).Error, same(n, int64(1)),
		db.Model(&Author{}).Where("id IN (?)", dear).Order("name desc").Limit(3).Offset(0).Pluck("name", &names).Error, same(names, []string{"Ann"}),
		db.Model(&Author{}).Select("authors.name, count(*) AS n, sum(price) AS sum").Joins("JOIN books ON books.author_id = authors.id").
			Group("authors.name").Having("count(*) > ?", 1).Scan(&sums).Error, same(len(sums) == 1 && sums[0].Sum == 1.5, true),
		db.Model(&Book{}).Distinct("author_id").Count(&n).Error, same(n, int64(1)),
		db.Where("meta @> ?", `{"pages": 3}`).Find(&[]Book{}).Error)
}

func preloads() error {
	var authors []Author
	err := db.Preload("Books", func(tx *gorm.DB) *gorm.DB { return tx.Order("title DESC") }).Preload("Books.Tags").Order("id").Find(&authors).Error
	if err != nil {
		return err
	}
	var tags []Tag
	return all(same([]any{len(authors), authors[0].Books[0].Title, len(authors[0].Books[1].Tags)}, []any{2, "B", 2}),
		db.Model(&authors[0].Books[1]).Association("Tags").Find(&tags), same(len(tags), 2), db.Model(&authors[0].Books[1]).Association("Tags").Delete(tags[0]))
}

func changes() error {
	var book Book
	done := db.Model(&book).Clauses(clause.Returning{}).Where("title = ?", "A").Update("price", gorm.Expr("price + ?", 2))
	return all(done.Error, same(done.RowsAffected, int64(1)), same(book.Price, 3.5), db.Model(&book).Updates(map[string]any{"sold": true, "meta": "[1]"}).Error,
		db.Save(&book).Error, db.Model(&Book{}).Where("1 = 1").UpdateColumn("sold", nil).Error)
}

func upserts() error {
	author := Author{Name: "Bob"}
	update := clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"updated_at"})}
	var made Author
	return all(db.Clauses(update).Create(&author).Error, same(author.ID, uint(2)), db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Author{Name: "Ann"}).Error,
		db.Where(Author{Name: "Cy"}).FirstOrCreate(&made).Error, same(made.ID > 2, true))
}

func batches() error {
	tags := make([]Tag, 1000)
	for n := range tags {
		tags[n].Slug = fmt.Sprint("é", n)
	}
	seen := 0
	err := db.CreateInBatches(&tags, 300).Error
	return all(err, db.Where("slug LIKE ?", "é%").FindInBatches(&[]Tag{}, 400, func(tx *gorm.DB, _ int) error { seen += int(tx.RowsAffected); return nil }).Error, same(seen, 1000))
}

func transactions() error {
	back := errors.New("back")
	err := db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&Author{Name: "gone"}).Error; err != nil {
			return err
		}
		inner := tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&Author{Name: "Ann"}).Error })
		if !errors.Is(inner, gorm.ErrDuplicatedKey) {
			return fmt.Errorf("%v instead of a duplicate", inner)
		}
		var n int64
		return all(tx.Model(&Author{}).Where("name = ?", "gone").Count(&n).Error, same(n, int64(1)), back)
	})
	var n int64
	return all(same(err, back), db.Model(&Author{}).Where("name = ?", "gone").Count(&n).Error, same(n, int64(0)))
}

func locks() error {
	return db.Transaction(func(tx *gorm.DB) error {
		var author Author
		return tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).First(&author, 1).Error
	})
}

func mistakes() error {
	for wanted, err := range map[error]error{
		gorm.ErrDuplicatedKey: db.Create(&Author{Name: "Ann"}).Error, gorm.ErrForeignKeyViolated: db.Create(&Book{AuthorID: 999}).Error,
		gorm.ErrCheckConstraintViolated: db.Create(&Book{AuthorID: 1, Price: -1}).Error, gorm.ErrRecordNotFound: db.First(&Author{}, 999).Error,
	} {
		if !errors.Is(err, wanted) {
			return fmt.Errorf("%v instead of %v", err, wanted)
		}
	}
	return nil
}

func raw() error {
	var n int
	return all(db.Raw("SELECT CAST(@a AS int) + CAST(@b AS int)", map[string]any{"a": 1, "b": 2}).Scan(&n).Error, same(n, 3), db.Exec("UPDATE tags SET slug = ? WHERE slug = ?", "z", "x").Error)
}

func deletes() error {
	var n int64
	return all(db.Where("name = ?", "Cy").Delete(&Author{}).Error, db.Unscoped().Model(&Author{}).Where("deleted_at IS NOT NULL").Count(&n).Error, same(n, int64(1)),
		db.Unscoped().Where("name = ?", "Cy").Delete(&Author{}).Error)
}

func migrator() error {
	m := db.Migrator()
	indexes, err := m.GetIndexes(&Book{})
	return all(err, same(len(indexes) > 0, true), same([]bool{m.HasTable("books"), m.HasTable("none"), m.HasColumn(&Book{}, "price"), m.HasIndex(&Book{}, "by_title"),
		m.HasConstraint(&Book{}, "a_price"), m.HasConstraint(&Author{}, "Books")}, []bool{true, false, true, true, true, true}),
		m.RenameColumn(&Tag{}, "slug", "called"), m.RenameIndex(&Book{}, "by_title", "by_name"), m.DropIndex(&Book{}, "by_name"), m.DropConstraint(&Book{}, "a_price"),
		m.CreateView("dear", gorm.ViewOption{Query: db.Model(&Book{}).Where("price > 1"), Replace: true}), m.DropView("dear"), m.DropColumn(&Tag{}, "called"))
}

func columnTypes() error {
	types, err := db.Migrator().ColumnTypes(&Book{})
	if err != nil {
		return err
	}
	for _, of := range types {
		if of.Name() == "price" {
			precision, scale, _ := of.DecimalSize()
			value, _ := of.DefaultValue()
			return same([]any{of.DatabaseTypeName(), precision, scale, value}, []any{"numeric", int64(8), int64(2), "0"})
		}
		if of.Name() == "id" {
			key, _ := of.PrimaryKey()
			counts, _ := of.AutoIncrement()
			if err := same([]bool{key, counts}, []bool{true, true}); err != nil {
				return err
			}
		}
	}
	return errors.New("no column price")
}

func drops() error {
	tables, err := db.Migrator().GetTables()
	return all(err, same(len(tables), 4), db.Migrator().DropTable("book_tags", &Book{}, &Tag{}, &Author{}))
}
