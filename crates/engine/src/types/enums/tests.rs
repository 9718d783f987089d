use super::*;

fn mood(labels: &[&str]) -> EnumDef {
    let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    let oids: Vec<u32> = (0..labels.len() as u32).map(|n| 20_000 + n).collect();
    EnumDef::new(19_999, 19_998, "mood", &labels, &oids).unwrap()
}

fn names(def: &EnumDef) -> Vec<&str> {
    def.labels().iter().map(|label| label.name.as_str()).collect()
}

#[test]
fn labels_are_added_where_it_is_said_and_keep_their_positions() {
    let first = mood(&["sad", "ok"]);
    let more = first.with_label("happy", Place::Last, 1).unwrap();
    let more = more.with_label("dead", Place::Before("sad"), 2).unwrap();
    let more = more.with_label("so so", Place::After("sad"), 3).unwrap();
    assert_eq!(names(&more), ["dead", "sad", "so so", "ok", "happy"]);
    let orders: Vec<f64> = more.labels().iter().map(|label| label.position as f64 / 2f64.powi(32)).collect();
    assert_eq!(orders, [0.0, 1.0, 1.5, 2.0, 3.0]);
    for label in first.labels() {
        assert_eq!(more.label(&label.name), Some(label));
    }
    assert_eq!(mood(&[]).with_label("only", Place::Last, 1).unwrap().labels()[0].position, 1 << 32);
}

#[test]
fn what_is_no_label_is_refused() {
    let def = mood(&["sad", "ok"]);
    let state = |made: Result<EnumDef>| made.unwrap_err().state.0;
    assert_eq!(state(def.with_label("ok", Place::Last, 1)), "42710");
    assert_eq!(state(def.with_label("x", Place::After("none"), 1)), "22023");
    assert_eq!(state(def.with_label(&"x".repeat(64), Place::Last, 1)), "42602");
    assert_eq!(state(def.with_renamed("none", "x")), "22023");
    assert_eq!(state(def.with_renamed("ok", "sad")), "42710");
    let twice = ["a".to_owned(), "a".to_owned()];
    assert_eq!(state(EnumDef::new(1, 2, "e", &twice, &[3, 4])), "23505");
}

/// Between two labels there is room for as many as a position has bits.
#[test]
fn where_there_is_no_room_a_label_is_refused() {
    let mut def = mood(&["a", "z"]);
    for n in 0..32 {
        def = def.with_label(&format!("{n}"), Place::After("a"), 1).unwrap();
    }
    let error = def.with_label("no room", Place::After("a"), 1).unwrap_err();
    assert_eq!((error.state.0, error.hint.is_some()), ("0A000", true));
    assert!(def.labels().is_sorted_by(|a, b| a.position < b.position));
}

#[test]
fn equal_definitions_have_one_number_and_a_value_is_shown_by_its_label() {
    let (of, again) = (EnumType::of(mood(&["sad", "ok"])).unwrap(), EnumType::of(mood(&["sad", "ok"])).unwrap());
    assert_eq!(of, again);
    let renamed = EnumType::of(of.def().with_renamed("ok", "fine").unwrap()).unwrap();
    assert!(of != renamed && of.is_same(renamed));
    let ok = DataType::Enum(of).parse("ok").unwrap();
    assert_eq!(ok.to_string(), "ok");
    let Datum::Enum(_, position) = ok else { panic!("no enum: {ok:?}") };
    assert_eq!(Datum::Enum(renamed, position).to_string(), "fine");
    // A value of a label that is younger than the definition.
    let newer = EnumType::of(of.def().with_label("late", Place::Last, 1).unwrap()).unwrap();
    let late = newer.parse("late").unwrap();
    assert_eq!(of.shown(late), "late");
    let error = DataType::Enum(of).parse("OK").unwrap_err();
    assert_eq!((error.state.0, error.message.as_str()), ("22P02", "invalid input value for enum mood: \"OK\""));
}
