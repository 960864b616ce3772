use super::*;
use crate::run::check::survey::{Field, MAX_DEPTH, MAX_VALUES, Object, Target};

/// Its umlaut has the bytes 3 and 4.
const SOURCE: &str = "awaütools.a.b({ field: ['x'] })";

fn a_use() -> ToolUse {
    let field =
        Field { name: "field".to_owned(), at: 17..22, value: Literal::List(vec![]), value_at: 24..29 };
    ToolUse {
        target: Target::Tool { server: "a".to_owned(), tool: "b".to_owned() },
        arguments: Some(Literal::List(vec![Literal::Object(Object { fields: vec![field], is_open: false })])),
        at: 5..32,
        server_at: 11..12,
        tool_at: 13..14,
        is_certain: true,
        is_forgotten: false,
    }
}

fn a_mistake(at: Bytes) -> Mistake {
    Mistake { message: "expected a name".to_owned(), hint: Some("write one".to_owned()), at }
}

fn an_import(at: Bytes) -> ImportProblem {
    ImportProblem { message: "No module named 'a'".to_owned(), at, is_certain: true }
}

fn with_arguments(arguments: Literal) -> Survey {
    Survey { uses: vec![ToolUse { arguments: Some(arguments), ..a_use() }], ..Survey::default() }
}

/// What the executor has of a survey that a worker has sent.
fn sent(survey: &Survey) -> Survey {
    decode(&serde_json::to_string(survey).unwrap(), Duration::ZERO, SOURCE)
}

fn field(one: &mut ToolUse) -> &mut Field {
    let Some(Literal::List(items)) = &mut one.arguments else { unreachable!() };
    let Some(Literal::Object(object)) = items.first_mut() else { unreachable!() };
    &mut object.fields[0]
}

/// One of the spans of a tool's use.
type SpanOf = fn(&mut ToolUse) -> &mut Bytes;

#[test]
fn v_471_spans_of_a_survey_are_in_the_source() {
    let survey = Survey {
        uses: vec![a_use()],
        mistakes: vec![a_mistake(0..1)],
        imports: vec![an_import(0..1)],
        program: 0..32,
        took: Duration::ZERO,
    };
    let known = sent(&survey);
    assert_eq!((known.uses.len(), known.mistakes.len(), known.program.clone()), (1, 1, 0..32));
    assert_eq!(known.imports, [an_import(0..1)]);
    let spans: [(&str, SpanOf); 5] = [
        ("at", |one| &mut one.at),
        ("server_at", |one| &mut one.server_at),
        ("tool_at", |one| &mut one.tool_at),
        ("a field's name", |one| &mut field(one).at),
        ("a field's value", |one| &mut field(one).value_at),
    ];
    #[expect(clippy::reversed_empty_ranges, reason = "a worker can send any two numbers")]
    let wrong = [0..33, 33..33, 9..8, 0..usize::MAX, usize::MAX..usize::MAX, 0..4, 4..5];
    for wrong in wrong {
        for (name, span) in spans {
            let mut one = a_use();
            *span(&mut one) = wrong.clone();
            let found = sent(&Survey { uses: vec![one, a_use()], ..Survey::default() });
            assert_eq!(found.uses.len(), 1, "{name} {wrong:?}");
        }
        let mistakes = vec![a_mistake(wrong.clone()), a_mistake(0..1)];
        let imports = vec![an_import(wrong.clone()), an_import(0..1)];
        let found = sent(&Survey { mistakes, imports, program: wrong.clone(), ..Survey::default() });
        let counts = (found.mistakes.len(), found.imports.len());
        assert_eq!((counts, found.program), ((1, 1), 0..0), "{wrong:?}");
    }
}

#[test]
fn v_471_a_survey_has_as_many_findings_as_a_reader_makes() {
    let uses: Vec<ToolUse> = (0..MAX_USES + 100).map(|_| a_use()).collect();
    let mistakes: Vec<Mistake> = (0..MAX_MISTAKES + 100).map(|_| a_mistake(0..1)).collect();
    let imports: Vec<ImportProblem> = (0..MAX_IMPORTS + 100).map(|_| an_import(0..1)).collect();
    let found = sent(&Survey { uses, mistakes, imports, ..Survey::default() });
    assert_eq!((found.uses.len(), found.mistakes.len()), (MAX_USES, MAX_MISTAKES));
    assert_eq!(found.imports.len(), MAX_IMPORTS);
    let long = Mistake { message: "x".repeat(100_000), hint: Some("y".repeat(100_000)), at: 0..1 };
    let found = sent(&Survey { mistakes: vec![long], ..Survey::default() });
    let one = &found.mistakes[0];
    assert_eq!((one.message.len(), one.hint.as_ref().unwrap().len()), (MAX_SAID + 3, MAX_SAID + 3));
    let long = ImportProblem { message: "x".repeat(100_000), ..an_import(0..1) };
    let found = sent(&Survey { imports: vec![long], ..Survey::default() });
    assert_eq!(found.imports[0].message.len(), MAX_SAID + 3);
}

#[test]
fn v_471_arguments_in_a_survey_have_as_many_values_as_a_reader_reads() {
    let list = |count| Literal::List(vec![Literal::Null; count]);
    assert_eq!(sent(&with_arguments(list(MAX_VALUES - 1))).uses.len(), 1);
    assert_eq!(sent(&with_arguments(list(MAX_VALUES))).uses.len(), 0);
    let nested = |depth, inner| (0..depth).fold(inner, |inner, _| Literal::List(vec![inner]));
    assert_eq!(sent(&with_arguments(nested(MAX_DEPTH, Literal::Null))).uses.len(), 1);
    assert_eq!(sent(&with_arguments(nested(MAX_DEPTH + 1, Literal::Null))).uses.len(), 0);
    // A reader reports what is deeper as unknown.
    let unknown = Literal::Unknown { may_be_absent: true };
    assert_eq!(sent(&with_arguments(nested(MAX_DEPTH + 1, unknown))).uses.len(), 1);
}

#[test]
fn v_472_the_parts_of_a_survey_are_counted_before_it_is_parsed() {
    // One of an honest reader, with as many calls as there can be.
    let mut one = a_use();
    let argument = field(&mut one).clone();
    let fields = vec![argument.clone(), argument.clone(), argument];
    one.arguments = Some(Literal::Object(Object { fields, is_open: false }));
    let of = |count| format!(r#"{{"uses":[{}],"program":{{"start":0,"end":0}}}}"#, join(&one, count));
    let honest = of(MAX_USES);
    assert_eq!(decode(&honest, Duration::ZERO, SOURCE).uses.len(), MAX_USES);
    // Within the bytes, but not within the memory: it is dropped as a whole.
    let many = of(MAX_BYTES / 1_000);
    assert!(many.len() <= MAX_BYTES, "{}", many.len());
    assert!(decode(&many, Duration::ZERO, SOURCE).uses.is_empty());
    let long = format!("{honest}{}", " ".repeat(MAX_BYTES));
    assert!(decode(&long, Duration::ZERO, SOURCE).uses.is_empty());
}

fn join(one: &ToolUse, count: usize) -> String {
    vec![serde_json::to_string(one).unwrap(); count].join(",")
}
