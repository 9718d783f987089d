module programs

go 1.25.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/lib/pq v1.12.3
	gorm.io/driver/postgres v1.6.3
	gorm.io/gorm v1.31.2
)
