//! The form of an elicitation: a flat object of simple fields, as the protocol restricts it.
//!
//! `jsonschema` checks whether an answer matches a schema, but does not tell what to show to a user. Fields and options
//! are bounded, and their texts checked, before anything is shown.

use serde_json::{Map, Number, Value, json};

use crate::text::{hidden_text, one_line};

/// Maximum number of fields. No user fills in more.
const MAX_FIELDS: usize = 32;

/// Maximum number of options of one field.
const MAX_OPTIONS: usize = 256;

/// A form that a server asks the user to fill in.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Form {
    /// The fields in the server's order; at most 32.
    pub fields: Vec<FormField>,
}

/// One field of a [`Form`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FormField {
    /// Its key in the answer. Without hidden characters.
    pub name: String,
    /// The server's name for it: one line without hidden characters. Untrusted text.
    pub title: Option<String>,
    /// The server's description: one line without hidden characters. Untrusted text.
    pub description: Option<String>,
    /// Whether an answer must contain the field.
    pub is_required: bool,
    /// The values that the field accepts.
    pub kind: FieldKind,
    /// The value of the field in an answer that leaves it out. It fits `kind`.
    pub default: Option<Value>,
    /// Whether titles of options are in `enumNames`, as before revision 2025-11-25. Older clients know only this form.
    has_enum_names: bool,
}

/// The values that a field of a [`Form`] accepts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A string.
    Text {
        /// Minimum number of characters.
        min_length: Option<u64>,
        /// Maximum number of characters.
        max_length: Option<u64>,
        /// `email`, `uri`, `date` or `date-time`. The server checks it.
        format: Option<&'static str>,
    },
    /// A number.
    Number {
        /// Whether it must be whole.
        is_integer: bool,
        /// Its minimum.
        minimum: Option<Number>,
        /// Its maximum.
        maximum: Option<Number>,
    },
    /// `true` or `false`.
    Boolean,
    /// One of some strings.
    Choice {
        /// The strings; at most 256.
        options: Vec<FormOption>,
    },
    /// A list of some of some strings.
    Choices {
        /// The strings; at most 256.
        options: Vec<FormOption>,
        /// Minimum number of strings.
        min_items: Option<u64>,
        /// Maximum number of strings.
        max_items: Option<u64>,
    },
}

/// One option of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormOption {
    /// The value in the answer. Without hidden characters.
    pub value: String,
    /// The server's name for it: one line without hidden characters. Untrusted text.
    pub title: Option<String>,
}

/// Why a form cannot be shown, or an answer does not fit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The schema is not an object of simple fields.
    #[error("the requested schema is not a flat object of strings, numbers, booleans and choices: `{0}`")]
    Schema(String),
    /// There are too many fields or options.
    #[error("a form has at most {MAX_FIELDS} fields, each with at most {MAX_OPTIONS} options")]
    TooLarge,
    /// A name or a value has characters that are invisible to the user.
    #[error("a name or an option has hidden characters")]
    Hidden,
    /// A field is missing or has a value that it does not accept.
    #[error("the field `{name}` expects {expected}")]
    Value {
        /// The field.
        name: String,
        /// The values that the field accepts.
        expected: String,
    },
}

impl Form {
    /// Reads the schema that a server requests.
    ///
    /// Keeps only what the protocol supports. A default that its own field does not accept is dropped.
    ///
    /// # Errors
    ///
    /// [`FormError::Schema`], [`FormError::TooLarge`] or [`FormError::Hidden`].
    pub fn from_schema(schema: &Value) -> Result<Self, FormError> {
        if schema["type"] != "object" {
            return Err(FormError::Schema("type".to_owned()));
        }
        let Some(properties) = schema["properties"].as_object() else {
            return Err(FormError::Schema("properties".to_owned()));
        };
        if properties.len() > MAX_FIELDS {
            return Err(FormError::TooLarge);
        }
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let field = |(name, schema): (&String, &Value)| {
            let is_required = required.iter().any(|other| other == name);
            FormField::from_schema(name, schema, is_required)
        };
        Ok(Self { fields: properties.iter().map(field).collect::<Result<_, _>>()? })
    }

    /// The form as a schema in the protocol's form.
    pub fn schema(&self) -> Value {
        let properties: Map<String, Value> =
            self.fields.iter().map(|field| (field.name.clone(), field.schema())).collect();
        let required = self.fields.iter().filter(|field| field.is_required).map(|field| &field.name);
        json!({ "type": "object", "properties": properties, "required": required.collect::<Vec<_>>() })
    }

    /// Completes the user's answer: fields that are left out get their defaults, and entries that are not in the form
    /// are dropped.
    ///
    /// # Errors
    ///
    /// [`FormError::Value`] for the first field that is required and missing, or has a value that it does not accept.
    pub fn complete(&self, mut filled: Map<String, Value>) -> Result<Map<String, Value>, FormError> {
        let mut answer = Map::new();
        for field in &self.fields {
            let value = filled.remove(&field.name).filter(|value| !value.is_null());
            match value.or_else(|| field.default.clone()) {
                Some(value) if field.takes(&value) => {
                    answer.insert(field.name.clone(), value);
                }
                None if !field.is_required => {}
                _ => return Err(field.unexpected()),
            }
        }
        Ok(answer)
    }
}

impl FormField {
    fn from_schema(name: &str, schema: &Value, is_required: bool) -> Result<Self, FormError> {
        if hidden_text(name) || name.contains(['\n', '\r', '\t']) {
            return Err(FormError::Hidden);
        }
        let text = |key: &str| schema[key].as_str().map(one_line);
        // A larger bound has no effect.
        let whole = |key: &str| schema[key].as_u64().filter(|bound| u32::try_from(*bound).is_ok());
        let kind = match schema["type"].as_str() {
            Some("string") => match options(schema)? {
                Some(options) => FieldKind::Choice { options },
                None => FieldKind::Text {
                    min_length: whole("minLength"),
                    max_length: whole("maxLength"),
                    format: ["email", "uri", "date", "date-time"]
                        .into_iter()
                        .find(|format| schema["format"] == *format),
                },
            },
            Some(kind @ ("number" | "integer")) => {
                let is_integer = kind == "integer";
                let bound = |key: &str| {
                    let bound = schema[key].as_number().cloned();
                    bound.filter(|bound| !is_integer || bound.is_i64())
                };
                FieldKind::Number { is_integer, minimum: bound("minimum"), maximum: bound("maximum") }
            }
            Some("boolean") => FieldKind::Boolean,
            Some("array") => {
                let options = options(&schema["items"])?;
                let options = options.ok_or_else(|| FormError::Schema(name.to_owned()))?;
                let (min_items, max_items) = (whole("minItems"), whole("maxItems"));
                FieldKind::Choices { options, min_items, max_items }
            }
            _ => return Err(FormError::Schema(name.to_owned())),
        };
        let (title, description) = (text("title"), text("description"));
        let has_enum_names = schema.get("enumNames").is_some();
        let name = name.to_owned();
        let mut field = Self { name, title, description, is_required, kind, default: None, has_enum_names };
        let is_default = |default: &&Value| {
            let is_whole =
                !matches!(field.kind, FieldKind::Number { is_integer: true, .. }) || default.is_i64();
            is_whole && field.takes(default)
        };
        field.default = schema.get("default").filter(is_default).cloned();
        Ok(field)
    }

    fn schema(&self) -> Value {
        let schema = match &self.kind {
            FieldKind::Text { min_length, max_length, format } => json!({
                "type": "string", "minLength": min_length, "maxLength": max_length, "format": format,
            }),
            FieldKind::Number { is_integer, minimum, maximum } => json!({
                "type": if *is_integer { "integer" } else { "number" },
                "minimum": minimum, "maximum": maximum,
            }),
            FieldKind::Boolean => json!({ "type": "boolean" }),
            FieldKind::Choice { options } => {
                let mut schema = self.options_schema(options, "oneOf");
                schema["type"] = "string".into();
                schema
            }
            FieldKind::Choices { options, min_items, max_items } => {
                let mut items = self.options_schema(options, "anyOf");
                if items.get("enum").is_some() {
                    items["type"] = "string".into();
                }
                json!({ "type": "array", "items": items, "minItems": min_items, "maxItems": max_items })
            }
        };
        let mut all = json!({
            "title": self.title, "description": self.description, "default": self.default,
        });
        if let (Value::Object(all), Value::Object(schema)) = (&mut all, schema) {
            all.extend(schema);
            all.retain(|_, value| !value.is_null());
        }
        all
    }

    /// The options in the schema keyword that their titles require. `titled` is the key of a list with titles.
    fn options_schema(&self, options: &[FormOption], titled: &str) -> Value {
        let values: Vec<&String> = options.iter().map(|option| &option.value).collect();
        if options.iter().all(|option| option.title.is_none()) {
            return json!({ "enum": values });
        }
        let titles = options.iter().map(|option| option.title.as_ref().unwrap_or(&option.value));
        if self.has_enum_names {
            return json!({ "enum": values, "enumNames": titles.collect::<Vec<_>>() });
        }
        let both = values.iter().zip(titles).map(|(value, title)| json!({ "const": value, "title": title }));
        json!({ titled: both.collect::<Vec<_>>() })
    }

    /// The values that the field accepts, in words.
    pub fn expected(&self) -> String {
        fn bounds<T: std::fmt::Display>(min: Option<&T>, max: Option<&T>) -> String {
            match (min, max) {
                (Some(min), Some(max)) => format!(", {min} to {max}"),
                (Some(min), None) => format!(", at least {min}"),
                (None, Some(max)) => format!(", at most {max}"),
                (None, None) => String::new(),
            }
        }
        fn values(options: &[FormOption]) -> String {
            options.iter().map(|option| format!("`{}`", option.value)).collect::<Vec<_>>().join(", ")
        }
        match &self.kind {
            FieldKind::Text { min_length, max_length, format } => {
                let what = match format {
                    Some("email") => "an email address",
                    Some("uri") => "an address",
                    Some("date") => "a date as in 2026-01-31",
                    Some("date-time") => "a date and a time as in 2026-01-31T12:00:00Z",
                    _ => "a text",
                };
                let length = bounds(min_length.as_ref(), max_length.as_ref());
                let unit = if length.is_empty() { "" } else { " characters" };
                format!("{what}{length}{unit}")
            }
            FieldKind::Number { is_integer, minimum, maximum } => {
                let what = if *is_integer { "a whole number" } else { "a number" };
                format!("{what}{}", bounds(minimum.as_ref(), maximum.as_ref()))
            }
            FieldKind::Boolean => "yes or no".to_owned(),
            FieldKind::Choice { options } => format!("one of {}", values(options)),
            FieldKind::Choices { options, min_items, max_items } => {
                format!("some of {}{}", values(options), bounds(min_items.as_ref(), max_items.as_ref()))
            }
        }
    }

    /// Parses what a user typed for the field. Several options are separated by commas; an option can be given by its
    /// number, from 1.
    ///
    /// # Errors
    ///
    /// [`FormError::Value`] if the field does not accept it.
    pub fn read(&self, typed: &str) -> Result<Value, FormError> {
        let typed = typed.trim();
        let option = |options: &[FormOption], typed: &str| {
            let by_number = || options.get(typed.parse::<usize>().ok()?.checked_sub(1)?);
            let found = options.iter().find(|option| option.value == typed).or_else(by_number);
            found.map(|option| Value::from(option.value.as_str()))
        };
        let value = match &self.kind {
            FieldKind::Text { .. } => Some(typed.into()),
            FieldKind::Number { .. } => typed.parse::<Number>().ok().map(Value::Number),
            FieldKind::Boolean => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Some(true.into()),
                "n" | "no" | "false" => Some(false.into()),
                _ => None,
            },
            FieldKind::Choice { options } => option(options, typed),
            FieldKind::Choices { options, .. } => {
                let parts = typed.split(',').map(str::trim).filter(|part| !part.is_empty());
                parts.map(|part| option(options, part)).collect::<Option<Vec<_>>>().map(Value::Array)
            }
        };
        value.filter(|value| self.takes(value)).ok_or_else(|| self.unexpected())
    }

    fn unexpected(&self) -> FormError {
        FormError::Value { name: self.name.clone(), expected: self.expected() }
    }

    /// Whether a value fits the field.
    fn takes(&self, value: &Value) -> bool {
        let within = |count: usize, min: &Option<u64>, max: &Option<u64>| {
            let count = count as u64;
            min.is_none_or(|min| count >= min) && max.is_none_or(|max| count <= max)
        };
        let is_option = |options: &[FormOption], value: &Value| {
            value.as_str().is_some_and(|value| options.iter().any(|option| option.value == value))
        };
        match &self.kind {
            FieldKind::Text { min_length, max_length, .. } => {
                value.as_str().is_some_and(|text| within(text.chars().count(), min_length, max_length))
            }
            FieldKind::Number { is_integer, minimum, maximum } => value.as_f64().is_some_and(|number| {
                let bound = |bound: &Option<Number>| bound.as_ref().and_then(Number::as_f64);
                (!is_integer || number.fract() == 0.0)
                    && bound(minimum).is_none_or(|minimum| number >= minimum)
                    && bound(maximum).is_none_or(|maximum| number <= maximum)
            }),
            FieldKind::Boolean => value.is_boolean(),
            FieldKind::Choice { options } => is_option(options, value),
            FieldKind::Choices { options, min_items, max_items } => value.as_array().is_some_and(|items| {
                let is_repeated = |(position, item)| items.iter().take(position).any(|other| other == item);
                items.len() <= options.len()
                    && within(items.len(), min_items, max_items)
                    && items.iter().all(|item| is_option(options, item))
                    && !items.iter().enumerate().any(is_repeated)
            }),
        }
    }
}

/// The options of a schema, or `None` if it has none.
fn options(schema: &Value) -> Result<Option<Vec<FormOption>>, FormError> {
    let list = |key: &str| schema[key].as_array().filter(|items| !items.is_empty());
    let untitled = list("enum").map(|values| {
        let names = schema["enumNames"].as_array().map_or(&[][..], Vec::as_slice);
        let titles = names.iter().map(Value::as_str).chain(std::iter::repeat(None));
        values.iter().map(Value::as_str).zip(titles).collect::<Vec<_>>()
    });
    let titled = || {
        let options = list("oneOf").or_else(|| list("anyOf"))?;
        Some(options.iter().map(|option| (option["const"].as_str(), option["title"].as_str())).collect())
    };
    let Some(found) = untitled.or_else(titled) else { return Ok(None) };
    if found.len() > MAX_OPTIONS {
        return Err(FormError::TooLarge);
    }
    let option = |(value, title): (Option<&str>, Option<&str>)| {
        let value = value.ok_or_else(|| FormError::Schema("enum".to_owned()))?.to_owned();
        if hidden_text(&value) || value.contains(['\n', '\r', '\t']) {
            return Err(FormError::Hidden);
        }
        Ok(FormOption { value, title: title.map(one_line) })
    };
    found.into_iter().map(option).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests;
