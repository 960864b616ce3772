//! A public library's catalogue as an MCP server over stdio.
//!
//! The data is beside this file and invented: see README.md. Some tools answer with structured
//! content and have an output schema, some answer with text, as real servers do.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{Json, ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const BOOKS: &str = include_str!("books.tsv");
const LOANS: &str = include_str!("loans.tsv");

/// In the order in which a book's copies are counted.
const BRANCHES: [Branch; 5] = [
    Branch { id: "central", name: "Central Library", opens: "Mon-Sat 9-20" },
    Branch { id: "harbour", name: "Harbour Branch", opens: "Tue-Sat 10-18" },
    Branch { id: "north", name: "North Branch", opens: "Mon-Fri 12-19" },
    Branch { id: "oldtown", name: "Old Town Branch", opens: "Tue-Fri 10-18" },
    Branch { id: "riverside", name: "Riverside Branch", opens: "Wed-Sun 11-17" },
];

/// The default size of a page of search results.
const DEFAULT_PAGE: usize = 100;
const MAX_PAGE: usize = 1000;

#[derive(Serialize)]
struct Branch {
    id: &'static str,
    name: &'static str,
    opens: &'static str,
}

/// A book in the catalogue.
#[derive(Clone, Serialize, JsonSchema)]
struct Book {
    id: String,
    title: String,
    author: String,
    year: u16,
    genre: String,
    language: String,
    pages: u16,
    /// `loan` or `reference`. Reference books do not leave the library.
    shelf: String,
    /// How many copies each branch has.
    copies: BTreeMap<String, u32>,
}

/// What to look for. Everything given must match; letters' case does not matter.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Words that the title must contain.
    title: Option<String>,
    /// A part of the author's name.
    author: Option<String>,
    /// The exact genre: novel, crime, science fiction, poetry, history, science, travel, children, cooking or art.
    genre: Option<String>,
    /// The exact language.
    language: Option<String>,
    /// The first year of publication.
    from_year: Option<u16>,
    /// The last year of publication.
    to_year: Option<u16>,
    /// How many of the matches to skip.
    offset: Option<usize>,
    /// The most books to return: 100 if not given, at most 1000.
    limit: Option<usize>,
}

/// A page of books.
#[derive(Serialize, JsonSchema)]
struct SearchResult {
    /// How many books match, on all pages.
    total: usize,
    books: Vec<Book>,
}

/// Which book.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhichBook {
    /// The book's id, such as `B0042`.
    id: String,
}

/// Which month's loans.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhichLoans {
    /// A month of 2025, such as `2025-03`.
    month: String,
    /// Only this branch's loans.
    branch: Option<String>,
}

/// A month's loans.
#[derive(Serialize, JsonSchema)]
struct Loans {
    month: String,
    loans: Vec<Loan>,
}

/// How often a branch lent a book.
#[derive(Serialize, JsonSchema)]
struct Loan {
    book: String,
    branch: String,
    count: u32,
}

/// Which book to put aside where.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Reservation {
    /// The book's id.
    id: String,
    /// The branch at which it will be fetched.
    branch: String,
}

/// The server. Reservations last as long as it runs.
#[derive(Clone)]
struct Library {
    books: Arc<BTreeMap<String, Book>>,
    reserved: Arc<Mutex<BTreeMap<(String, String), u32>>>,
}

#[tool_router]
impl Library {
    fn new() -> Self {
        let books = BOOKS.lines().skip(1).map(book).map(|book| (book.id.clone(), book)).collect();
        Self { books: Arc::new(books), reserved: Arc::default() }
    }

    /// Finds books in the catalogue, ordered by id.
    #[tool(annotations(read_only_hint = true))]
    fn search_books(&self, Parameters(search): Parameters<Search>) -> Json<SearchResult> {
        let matches: Vec<&Book> = self.books.values().filter(|book| search.matches(book)).collect();
        let limit = search.limit.unwrap_or(DEFAULT_PAGE).min(MAX_PAGE);
        let page = matches.iter().skip(search.offset.unwrap_or(0)).take(limit);
        Json(SearchResult { total: matches.len(), books: page.map(|&book| book.clone()).collect() })
    }

    /// Returns one book.
    #[tool(annotations(read_only_hint = true))]
    fn get_book(&self, Parameters(which): Parameters<WhichBook>) -> Result<Json<Book>, String> {
        self.book(&which.id).cloned().map(Json)
    }

    /// Returns the library's branches with their opening hours, as JSON text.
    #[tool(annotations(read_only_hint = true))]
    fn list_branches(&self) -> Result<String, String> {
        serde_json::to_string_pretty(&BRANCHES).map_err(|error| error.to_string())
    }

    /// Returns how often each branch lent each book in a month. About 300 entries for each branch.
    #[tool(annotations(read_only_hint = true))]
    fn loans_for_month(&self, Parameters(which): Parameters<WhichLoans>) -> Result<Json<Loans>, String> {
        if let Some(branch) = &which.branch {
            branch_position(branch)?;
        }
        let mut loans = Vec::new();
        let mut is_known = false;
        for line in LOANS.lines().skip(1) {
            let [month, branch, entries] = columns(line);
            if month != which.month {
                continue;
            }
            is_known = true;
            if which.branch.as_ref().is_some_and(|wanted| wanted != branch) {
                continue;
            }
            loans.extend(entries.split(' ').filter_map(|entry| {
                let (book, count) = entry.split_once(':')?;
                let count = count.parse().ok()?;
                Some(Loan { book: book.to_owned(), branch: branch.to_owned(), count })
            }));
        }
        if is_known {
            Ok(Json(Loans { month: which.month, loans }))
        } else {
            Err(format!("there are no figures for {}; there are some for 2025-01 to 2025-12", which.month))
        }
    }

    /// Puts a copy of a book aside. Fails for reference books and when the branch has no copy left.
    #[tool(annotations(destructive_hint = false, idempotent_hint = false))]
    fn reserve_book(&self, Parameters(wanted): Parameters<Reservation>) -> Result<String, String> {
        let book = self.book(&wanted.id)?;
        let branch = &BRANCHES[branch_position(&wanted.branch)?];
        if book.shelf == "reference" {
            return Err(format!("{} is a reference book and cannot be taken home", book.id));
        }
        let copies = book.copies.get(branch.id).copied().unwrap_or(0);
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = reserved.entry((book.id.clone(), wanted.branch)).or_default();
        if *taken >= copies {
            let elsewhere =
                book.copies.iter().filter(|(_, count)| **count > 0).map(|(branch, _)| branch.as_str());
            let elsewhere: Vec<&str> = elsewhere.filter(|other| *other != branch.id).collect();
            let elsewhere =
                if elsewhere.is_empty() { "no other branch".to_owned() } else { elsewhere.join(", ") };
            return Err(format!(
                "{} has no copy of {} left; copies are at: {elsewhere}",
                branch.name, book.id
            ));
        }
        *taken += 1;
        Ok(format!("reserved \"{}\" at {}", book.title, branch.name))
    }

    fn book(&self, id: &str) -> Result<&Book, String> {
        self.books.get(id).ok_or_else(|| format!("there is no book {id}"))
    }
}

#[tool_handler(
    name = "library",
    version = "1.0.0",
    instructions = "The catalogue, branches and loans of a public library. All of it is made up."
)]
impl ServerHandler for Library {}

impl Search {
    fn matches(&self, book: &Book) -> bool {
        let contains = |text: &str, part: &Option<String>| {
            part.as_ref().is_none_or(|part| text.to_lowercase().contains(&part.to_lowercase()))
        };
        let equals = |text: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| text.eq_ignore_ascii_case(wanted))
        };
        contains(&book.title, &self.title)
            && contains(&book.author, &self.author)
            && equals(&book.genre, &self.genre)
            && equals(&book.language, &self.language)
            && self.from_year.is_none_or(|year| book.year >= year)
            && self.to_year.is_none_or(|year| book.year <= year)
    }
}

fn branch_position(id: &str) -> Result<usize, String> {
    BRANCHES.iter().position(|branch| branch.id == id).ok_or_else(|| {
        let known: Vec<&str> = BRANCHES.iter().map(|branch| branch.id).collect();
        format!("there is no branch {id}; there are: {}", known.join(", "))
    })
}

fn book(line: &str) -> Book {
    let [id, title, author, year, genre, language, pages, shelf, copies] = columns(line).map(str::to_owned);
    let copies = BRANCHES.iter().zip(copies.split(','));
    Book {
        id,
        title,
        author,
        year: number(&year),
        genre,
        language,
        pages: number(&pages),
        shelf,
        copies: copies.map(|(branch, count)| (branch.id.to_owned(), number(count))).collect(),
    }
}

fn columns<const COUNT: usize>(line: &str) -> [&str; COUNT] {
    let columns: Vec<&str> = line.split('\t').collect();
    columns.try_into().expect("the data ships with the server and is well formed")
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().expect("the data ships with the server and is well formed")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Ends when the client closes stdin.
    Library::new().serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
