//! Providers of language models over HTTP on loopback, each with its wire format.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cx::{ApiKey, LlmAccess, LlmOptions, ModelProvider, ProviderKind};
use serde_json::{Value, json};

use super::mock::Decrement;

/// The key that the provider accepts.
pub(crate) const KEY: &str = "key-of-the-fake-provider-0123456789";

/// The provider's reaction to a question.
pub(crate) enum Reply {
    /// Answers with a text, as a stream if one is asked for.
    Text(String),
    /// Answers without reporting tokens.
    WithoutUsage(String),
    /// Fails with a status, headers and a message.
    Status(u16, &'static str, String),
    /// Sends half of the answer and closes the connection.
    Cut(String),
    /// Streams a text, and then sends neither its end nor anything else.
    Stalled(String),
    /// Sends nothing.
    Silence,
    /// Answers with a body in a wrong format.
    Garbage,
    /// Sends these bytes, which are the head and the body of a response, and closes the connection.
    Raw(Vec<u8>),
    /// Sends the first text, and then the second one again and again, as long as the other side reads.
    Endless(&'static str, String),
}

/// A question that the provider was asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// The path.
    pub(crate) path: String,
    /// The headers, in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Value,
    /// The last message.
    pub(crate) prompt: String,
}

type Answer = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A provider that runs until the process ends.
pub(crate) struct FakeProvider {
    kind: ProviderKind,
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    tokens: Arc<AtomicU64>,
    open: Arc<AtomicUsize>,
}

impl FakeProvider {
    pub(crate) fn start(
        kind: ProviderKind,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer: Arc<Answer> = Arc::new(answer);
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let tokens = Arc::new(AtomicU64::new(0));
        let open = Arc::new(AtomicUsize::new(0));
        let fake = Self {
            kind,
            port,
            asked: Arc::clone(&asked),
            tokens: Arc::clone(&tokens),
            open: Arc::clone(&open),
        };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, asked) = (Arc::clone(&answer), Arc::clone(&asked));
                let (tokens, open) = (Arc::clone(&tokens), Arc::clone(&open));
                std::thread::spawn(move || {
                    open.fetch_add(1, Ordering::SeqCst);
                    // This holds also when an assertion about the question panics.
                    let _open = Decrement(&open);
                    let _gone = serve(kind, stream, &*answer, &asked, &tokens);
                });
            }
        });
        fake
    }

    /// Options with this provider, enabled.
    pub(crate) fn options(&self) -> LlmOptions {
        let base = match self.kind {
            ProviderKind::Anthropic | ProviderKind::OpenAi | ProviderKind::Mistral => "/v1",
            ProviderKind::Gemini => "/v1beta/",
            _ => "",
        };
        LlmOptions {
            access: LlmAccess::Always,
            provider: Some(ModelProvider {
                kind: self.kind,
                model: "fake-model".to_owned(),
                url: Some(format!("http://127.0.0.1:{}{base}", self.port)),
                key: Some(ApiKey::new(KEY)),
            }),
            ..LlmOptions::default()
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Tokens of all answers, as reported in their `usage`.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::SeqCst)
    }

    /// Connections on which a question is being answered.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

fn serve(
    kind: ProviderKind,
    mut stream: TcpStream,
    answer: &Answer,
    asked: &Mutex<Vec<Asked>>,
    tokens: &AtomicU64,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            // The client has cancelled the question before it was sent.
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value);
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap();
    let streams = body["stream"] == true || path.contains("streamGenerateContent");
    let prompt = prompt(kind, &body);
    let asked_now = Asked { path, headers, body, prompt };
    asked.lock().unwrap().push(asked_now.clone());
    let is_authorized = kind == ProviderKind::Ollama
        || asked_now.headers.iter().any(|(_, value)| value == KEY || *value == format!("Bearer {KEY}"));
    let reply = if is_authorized {
        answer(&asked_now)
    } else {
        Reply::Status(401, "", "Incorrect API key provided".to_owned())
    };
    let max = asked_now.body["max_tokens"]
        .as_u64()
        .or(asked_now.body["max_completion_tokens"].as_u64())
        .or(asked_now.body["generationConfig"]["maxOutputTokens"].as_u64())
        .or(asked_now.body["options"]["num_predict"].as_u64());
    match reply {
        Reply::Text(text) => {
            // A word counts as a token, and there are no more words than were asked for.
            let output = (text.split_whitespace().count() as u64).min(max.unwrap_or(u64::MAX));
            let usage = Some((asked_now.prompt.split_whitespace().count() as u64, output));
            tokens.fetch_add(usage.map_or(0, |(input, output)| input + output), Ordering::SeqCst);
            send(&mut stream, kind, streams, &text, usage, false)
        }
        Reply::WithoutUsage(text) => send(&mut stream, kind, streams, &text, None, false),
        Reply::Cut(text) => send(&mut stream, kind, streams, &text, Some((1, 1)), true),
        Reply::Status(status, headers, message) => {
            let body = json!({ "error": { "type": "error", "message": message } }).to_string();
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} Fake\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
        }
        Reply::Stalled(text) => {
            let pieces: Vec<&str> = text.split_inclusive(' ').collect();
            // Anthropic has two events before the first piece.
            let before = if kind == ProviderKind::Anthropic { 2 } else { 0 };
            send_head(&mut stream, kind)?;
            for event in events(kind, &pieces, None).iter().take(before + pieces.len()) {
                stream.write_all(event.as_bytes())?;
            }
            stream.flush()?;
            // Until the other side no longer reads.
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            let _gone = reader.read(&mut [0]);
            Ok(())
        }
        Reply::Silence => {
            // Until the other side no longer waits.
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            let _gone = reader.read(&mut [0]);
            Ok(())
        }
        Reply::Garbage => {
            let body = "{\"what\": \"is this\"}";
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        }
        Reply::Raw(bytes) => stream.write_all(&bytes),
        Reply::Endless(start, piece) => {
            stream.write_all(start.as_bytes())?;
            let pieces = piece.repeat((64 << 10) / piece.len());
            loop {
                stream.write_all(pieces.as_bytes())?;
            }
        }
    }
}

/// The last message.
fn prompt(kind: ProviderKind, body: &Value) -> String {
    let last = match kind {
        ProviderKind::Gemini => &body["contents"].as_array().unwrap().last().unwrap()["parts"],
        _ => &body["messages"].as_array().unwrap().last().unwrap()["content"],
    };
    match last {
        Value::String(text) => text.clone(),
        other => other[0]["text"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Sends an answer in the provider's format.
fn send(
    stream: &mut TcpStream,
    kind: ProviderKind,
    streams: bool,
    text: &str,
    usage: Option<(u64, u64)>,
    is_cut: bool,
) -> std::io::Result<()> {
    if !streams {
        let body = whole(kind, text, usage).to_string();
        let (sent, length) =
            if is_cut { (&body[..body.len() / 2], body.len()) } else { (&*body, body.len()) };
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{sent}"
        );
    }
    send_head(stream, kind)?;
    let pieces: Vec<&str> = text.split_inclusive(' ').collect();
    let events = events(kind, &pieces, usage);
    let count = if is_cut { events.len() / 2 } else { events.len() };
    for event in &events[..count] {
        stream.write_all(event.as_bytes())?;
        stream.flush()?;
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Sends the head of a streamed answer.
fn send_head(stream: &mut TcpStream, kind: ProviderKind) -> std::io::Result<()> {
    let mime = if kind == ProviderKind::Ollama { "application/x-ndjson" } else { "text/event-stream" };
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: {mime}\r\nconnection: close\r\n\r\n")
}

fn whole(kind: ProviderKind, text: &str, usage: Option<(u64, u64)>) -> Value {
    let mut body = match kind {
        ProviderKind::Anthropic => json!({
            "id": "1", "type": "message", "role": "assistant", "model": "fake-model-1",
            "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn",
        }),
        ProviderKind::Gemini => json!({
            "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": "STOP" }],
            "modelVersion": "fake-model-1",
        }),
        ProviderKind::Ollama => json!({
            "model": "fake-model-1", "created_at": "2026-01-01T00:00:00Z", "done": true, "done_reason": "stop",
            "message": { "role": "assistant", "content": text },
        }),
        _ => json!({
            "id": "1", "object": "chat.completion", "model": "fake-model-1",
            "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
        }),
    };
    let Some((input, output)) = usage else { return body };
    match kind {
        ProviderKind::Anthropic => body["usage"] = json!({ "input_tokens": input, "output_tokens": output }),
        ProviderKind::Gemini => {
            let total = input + output;
            body["usageMetadata"] = json!({ "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": total });
        }
        ProviderKind::Ollama => {
            body["prompt_eval_count"] = input.into();
            body["eval_count"] = output.into();
        }
        _ => {
            let total = input + output;
            body["usage"] =
                json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": total });
        }
    }
    body
}

fn events(kind: ProviderKind, pieces: &[&str], usage: Option<(u64, u64)>) -> Vec<String> {
    let (input, output) = usage.unwrap_or_default();
    let named = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let data = |event: &Value| format!("data: {event}\n\n");
    let mut events = Vec::new();
    match kind {
        ProviderKind::Anthropic => {
            events.push(named(&json!({ "type": "message_start", "message": {
                "id": "1", "type": "message", "role": "assistant", "model": "fake-model-1", "content": [],
                "usage": { "input_tokens": input, "output_tokens": 0 },
            } })));
            events.push(named(
                &json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
            ));
            events.extend(pieces.iter().map(|piece| {
                let delta = json!({ "type": "text_delta", "text": piece });
                named(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
            }));
            events.push(named(&json!({ "type": "content_block_stop", "index": 0 })));
            events.push(named(&json!({
                "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": output },
            })));
            events.push(named(&json!({ "type": "message_stop" })));
        }
        ProviderKind::Gemini => {
            let candidate =
                |text: &str| json!([{ "content": { "role": "model", "parts": [{ "text": text }] } }]);
            events.extend(pieces.iter().map(|piece| data(&json!({ "candidates": candidate(piece) }))));
            let mut last = whole(kind, "", usage);
            last["candidates"][0]["content"]["parts"] = json!([]);
            events.push(data(&last));
        }
        ProviderKind::Ollama => {
            events.extend(pieces.iter().map(|piece| {
                let message = json!({ "role": "assistant", "content": piece });
                format!("{}\n", json!({ "model": "fake-model-1", "done": false, "message": message }))
            }));
            events.push(format!("{}\n", whole(kind, "", usage)));
        }
        _ => {
            let choice = |delta: Value, reason: Value| {
                json!({ "id": "1", "object": "chat.completion.chunk", "model": "fake-model-1",
                    "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
            };
            events.extend(pieces.iter().map(|piece| data(&choice(json!({ "content": piece }), Value::Null))));
            events.push(data(&choice(json!({}), json!("stop"))));
            if usage.is_some() {
                let usage = &whole(ProviderKind::OpenAi, "", usage)["usage"];
                events.push(data(&json!({ "id": "1", "choices": [], "usage": usage })));
            }
            events.push("data: [DONE]\n\n".to_owned());
        }
    }
    events
}
