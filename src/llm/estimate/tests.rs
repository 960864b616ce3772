use super::{request_tokens, tokens};
use crate::llm::{ModelMessage, ModelRequest, ModelRole};

/// Texts of the kinds that scripts send. The tokenizer is the one of OpenAI's models; those of others
/// that are public have vocabularies of the same size.
const TEXTS: &[&str] = &[
    "",
    "a",
    "The quick brown fox jumps over the lazy dog. It does so every day, without complaint.",
    "Donaudampfschifffahrtsgesellschaftskapitän und Rechtsschutzversicherungsgesellschaften",
    "Señor, ¿dónde está la biblioteca más cercana? Mañana será otro día.",
    "我们需要把这个文件总结成三句话，并且列出所有的名字。",
    "Быстрая коричневая лиса прыгает через ленивую собаку.",
    "日本語のテキストを要約してください。よろしくお願いします。",
    "🙂🙃 👩‍👩‍👧‍👦 🇩🇪",
    r#"{"id": 12345, "name": "a_long_identifier", "tags": ["x", "y"], "nested": {"ok": true, "n": null}}"#,
    "fn main() {\n    let x = vec![1, 2, 3];\n    println!(\"{x:?}\");\n}\n",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "d41d8cd98f00b204e9800998ecf8427e 5f4dcc3b5aa765d61d8327deb882cf99",
    "SELECT COUNT(*) FROM orders WHERE status = 'OPEN' AND total > 100.00 GROUP BY customer_id;",
    // Texts without words of a language: tokenizers cut them into pieces of one to three letters.
    "xkqvzjw plmrtgh bnfdsw qzxcvy wkjhgf ptrmnbl zxqwkv jhgfds lkmnbv qpwoei rutyal skdjfh gmznxb cvqawz sxedcr",
    "GATTACAGATTACACCGGTTAACCGGTTGACATTGCAGCCATGATCGATCGTAGCTAGCTAGGATCCAGTTACG",
    "gattacagattacaccggttaaccggttgacattgcagccatgatcgatcgtagctagctaggatccagttacg",
    "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVVHSLAKWKRQTLGQHDFSAGEGLYTHMKALRPDEDRLSPLHSVYVDQWDWERVMGDGERQ",
    "KRSXG5CTMVRXEZLUKRSXG5BAMVXGG33EMVSCA5DPEBSGKZTJNZSSA2LT",
    "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᏥᏄᏍᏛᎩ ᎢᏧᎳ",
    "𓀀𓀁𓀂𓀃𓀄 𒀀𒀁𒀂𒀃",
    "https://example.com/a/b?c=d&e=f#g 192.168.0.1 2026-11-22T22:18:33Z +49 170 1234567",
];

#[test]
fn the_estimate_is_above_the_tokenizer_and_not_far_above() {
    let (mut estimated, mut counted) = (0, 0);
    for text in TEXTS {
        let count = bpe_openai::o200k_base().count(*text) as u64;
        let estimate = tokens(text);
        assert!(estimate >= count, "{text}: {estimate} for {count}");
        (estimated, counted) = (estimated + estimate, counted + count);
    }
    assert!(estimated <= counted * 5 / 2, "{estimated} for {counted}");
}

#[test]
fn a_conversation_that_is_too_long_is_not_counted() {
    let request = |text: String| ModelRequest {
        model: None,
        system_prompt: None,
        messages: vec![ModelMessage { role: ModelRole::User, text }],
        max_tokens: 10,
    };
    let random = request("xkqvzjw plmrtgh ".repeat(100));
    let (few, enough) = (request_tokens(&random, 10), request_tokens(&random, 100_000));
    assert!(few > 10 && enough > few, "{few}, {enough}");
    // A text of 64 MiB is not counted, and nothing is lower than what it could be.
    let long = "x".repeat(64 << 20);
    assert_eq!(tokens(&long), 32 << 20);
}
