use super::csv::{columns, is_number};
use super::*;

/// A file that is gone with the test.
struct Temporary(std::path::PathBuf);

#[expect(clippy::disallowed_methods, reason = "tests with files")]
impl Temporary {
    fn new(name: &str, bytes: &[u8]) -> Temporary {
        let path = std::env::temp_dir().join(format!("terrace-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Temporary(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn types(name: &str, text: &str) -> Result<Vec<Column>> {
    columns(Temporary::new(name, text.as_bytes()).path(), b',')
}

#[test]
fn a_column_has_the_type_that_loses_nothing() {
    let lines = "b,i,n,d,t,z,code,plus,mixed,empty,\"q,\"\"\"\n\
                 true,1,1.50,2026-11-27,2026-11-27 12:30:00,2026-11-27T12:30:00Z,007,+1,1,,x\n\
                 false,-20,3,1999-01-01,2026-11-27T12:30,2026-11-27 12:30:00.25+02,010,5.,x,,\n\
                 ,,1e5,,,,,,,,\n";
    let zoned = DataType::Timestamptz;
    let (numeric, text) = (DataType::Numeric(None), DataType::Text);
    let expected = [
        ("b", DataType::Bool),
        ("i", DataType::Int8),
        ("n", numeric),
        ("d", DataType::Date),
        ("t", DataType::Timestamp),
        ("z", zoned),
        ("code", text),
        ("plus", text),
        ("mixed", text),
        ("empty", text),
        ("q,\"", text),
    ];
    let found = types("types.csv", lines).unwrap();
    assert_eq!(found, expected.map(|(name, of)| (name.to_owned(), of)));
}

#[test]
fn numbers_are_written_without_what_would_be_lost() {
    for (text, point, is) in [
        ("0", false, true),
        ("-7", false, true),
        ("-", false, false),
        ("00", false, false),
        ("1.5", false, false),
        ("0.50", true, true),
        (".5", true, false),
        ("1.", true, false),
        ("1e-3", true, true),
        ("1e", true, false),
        ("NaN", true, false),
    ] {
        assert_eq!(is_number(text, point), is, "{text}");
    }
}

#[test]
fn what_is_no_table_is_refused() {
    let state = |result: Result<Vec<Column>>| result.unwrap_err().state.0;
    assert_eq!(state(types("none.csv", "")), "22P04");
    assert_eq!(state(types("few.csv", "a,b\n1\n")), "22P04");
    assert_eq!(state(types("many.csv", "a\n1,2\n")), "22P04");
    assert_eq!(state(types("open.csv", "a\n\"1\n")), "22P04");
    let no_utf8 = Temporary::new("bytes.csv", b"a\n\xff\n");
    assert_eq!(state(columns(no_utf8.path(), b',')), "22021");
    let open = |path: &str| FileTable::open(path).map(|_| vec![]);
    assert_eq!(state(open("sales.csv")), "42602");
    assert_eq!(state(open("/nowhere/sales.csv")), "58P01");
    assert_eq!(state(open("/nowhere/sales.doc")), "0A000");
    assert_eq!(state(open(Temporary::new("damaged.parquet", b"PAR1 and no more").path())), "22P04");
}

#[test]
fn names_that_appear_twice_are_told_apart() {
    let file = Temporary::new("twice.csv", b"\xef\xbb\xbfa,a,\n1,2,3\n");
    let table = FileTable::open(file.path()).unwrap();
    assert_eq!(table.titles, ["a", "a", "column3"]);
    let names: Vec<&String> = table.schema.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, ["a", "a 2", "column3"]);
}

/// One column of a Parquet file, as it is read.
fn read_back(name: &str, array: datafusion::arrow::array::ArrayRef) -> Result<Vec<String>> {
    use datafusion::arrow::util::display::array_value_to_string;
    let batch = RecordBatch::try_from_iter([("x", array)]).unwrap();
    let mut bytes = vec![];
    let mut writer = ::parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let file = Temporary::new(name, &bytes);
    let (titles, types): (Vec<String>, Vec<DataType>) = parquet::columns(file.path())?.into_iter().unzip();
    let schema: SchemaRef = Arc::new(Schema::new(vec![field_of("x", types[0], true)]));
    let table = FileTable { path: file.path().into(), format: Format::Parquet, titles, types, schema: schema.clone() };
    let scan = FileScan { table, wanted: vec![0], schema };
    let mut found = vec![];
    let mut take = |batch: RecordBatch| {
        found.extend((0..batch.num_rows()).map(|row| array_value_to_string(batch.column(0), row).unwrap()));
        true
    };
    parquet::read(&scan, &mut take)?;
    Ok(found)
}

/// Another program's times may be none of ours.
#[test]
fn times_beyond_the_type_are_an_error() {
    use datafusion::arrow::array::{Date32Array, Time64MicrosecondArray, TimestampMicrosecondArray};
    const DAY: i64 = 86_400_000_000;
    let time = |micros: i64| read_back("time.parquet", Arc::new(Time64MicrosecondArray::from(vec![micros])));
    assert_eq!(time(0).unwrap().len(), 1);
    assert_eq!(time(DAY - 1).unwrap().len(), 1);
    assert_eq!(time(DAY + 1).unwrap_err().state.0, "22008");
    assert_eq!(time(-1).unwrap_err().state.0, "22008");
    let date = |days: i32| read_back("date.parquet", Arc::new(Date32Array::from(vec![days])));
    assert_eq!(date(0).unwrap(), ["1970-01-01"]);
    assert_eq!(date(i32::MAX).unwrap_err().state.0, "22008");
    assert_eq!(date(-2_440_589).unwrap_err().state.0, "22008");
    let timestamp = |micros: i64| read_back("ts.parquet", Arc::new(TimestampMicrosecondArray::from(vec![micros])));
    assert_eq!(timestamp(0).unwrap().len(), 1);
    assert_eq!(timestamp(i64::MAX).unwrap_err().state.0, "22008");
    assert_eq!(timestamp(i64::MIN + 1).unwrap_err().state.0, "22008");
}
