//! Draws `cx top`: a summary line, a table of servers, and a table of upstream servers.

use bytesize::ByteSize;
use cx::text::one_line;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style as CellStyle};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, Wrap};

use super::servers::{Watched, WatchedServer};
use crate::prometheus::total;
use crate::reading::{Reading, ServerReading, UpstreamReading};
use crate::running::seconds_since_1970;
use crate::text::{counted, shown_path};

/// How a frame looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Whether it has colors. Words always convey the same information.
    pub(crate) has_color: bool,
    /// Whether the last line names the keys.
    pub(crate) has_keys: bool,
}

/// Everything that one frame shows, ready to be laid out.
pub(crate) struct Frame<'a> {
    watched: &'a Watched,
    /// A row for each server, and a note below it.
    servers: Vec<ServerRow<'a>>,
    upstream: Vec<(&'a WatchedServer, &'a str, &'a UpstreamReading)>,
}

struct ServerRow<'a> {
    server: &'a WatchedServer,
    note: Option<String>,
}

/// Lines that are neither servers nor upstream servers: the first line, two headings of tables, two empty
/// lines, and the last line.
const OTHER_ROWS: usize = 6;

/// The columns of servers before the last one, which has their directories, and at least `MIN_DIRECTORY`.
const SERVER_WIDTHS: [u16; 10] = [7, 5, 6, 7, 6, 7, 6, 6, 5, 7];
const MIN_DIRECTORY: u16 = 8;

/// The columns that are left out on a narrow terminal, in this order: the rate, the transport, the percentile, the
/// memory, the age, the runs that are queued, that have ended, that have failed and that run, and the process.
const SERVER_DISPENSABLE: [usize; 10] = [8, 1, 7, 9, 2, 4, 5, 6, 3, 0];

/// The columns of upstream servers after the first one, which has their names, and at least `MIN_NAME`.
const UPSTREAM_WIDTHS: [u16; 7] = [7, 9, 6, 6, 8, 7, 7];
const MIN_NAME: u16 = 16;

/// As [`SERVER_DISPENSABLE`]: the process, the percentile, the queued calls, the calls, those in flight and those that
/// have failed, and the state of the circuit breaker.
const UPSTREAM_DISPENSABLE: [usize; 7] = [0, 6, 3, 4, 2, 5, 1];

/// Which columns are shown at this width. The others are left out whole, because a number that is cut is another
/// number. Each column is followed by a gap, and `text` is the minimum width of the column of text.
fn fitting(width: u16, widths: &[u16], text: u16, dispensable: &[usize]) -> Vec<bool> {
    let mut shown = vec![true; widths.len()];
    for &column in dispensable {
        let columns = only(widths, &shown).map(|width| u32::from(*width) + 1);
        if u32::from(text) + columns.sum::<u32>() <= u32::from(width) {
            break;
        }
        if let Some(shown) = shown.get_mut(column) {
            *shown = false;
        }
    }
    shown
}

/// The items of `items`, one for each column, whose columns are shown. Items beyond the length of `shown` are shown.
fn only<T>(items: impl IntoIterator<Item = T>, shown: &[bool]) -> impl Iterator<Item = T> {
    let items = items.into_iter().enumerate();
    items.filter(move |(index, _)| shown.get(*index).copied().unwrap_or(true)).map(|(_, item)| item)
}

impl<'a> Frame<'a> {
    pub(crate) fn new(watched: &'a Watched) -> Self {
        let servers = watched.servers.iter().map(|server| ServerRow { server, note: note(server) });
        let upstream = watched.servers.iter().flat_map(|server| {
            let upstream = server.reading.numbers().into_iter().flat_map(|reading| &reading.upstream);
            upstream.map(move |(name, upstream)| (server, name.as_str(), upstream))
        });
        Self { watched, servers: servers.collect(), upstream: upstream.collect() }
    }

    /// The number of rows if nothing is left out.
    pub(crate) fn rows(&self) -> usize {
        self.server_rows().max(1) + self.upstream.len().max(1) + OTHER_ROWS
    }

    fn server_rows(&self) -> usize {
        self.servers.iter().map(|row| 1 + usize::from(row.note.is_some())).sum()
    }

    /// The maximum number of rows of both tables that can be above the screen.
    pub(crate) fn max_scroll(&self) -> usize {
        self.servers.len().max(self.upstream.len()).saturating_sub(1)
    }

    /// Draws it; `scrolled` rows of each table that does not fit are above the screen.
    pub(crate) fn draw(&self, frame: &mut ratatui::Frame<'_>, scrolled: usize, style: Style) {
        let area = frame.area();
        let height = usize::from(area.height);
        // Servers get the rows that they need, up to half of the screen.
        let space = height.saturating_sub(OTHER_ROWS);
        let for_servers = self.server_rows().max(1);
        let for_servers = for_servers.min(space.saturating_sub(self.upstream.len()).max(space / 2)).max(1);
        let length = |number: usize| Constraint::Length(u16::try_from(number).unwrap_or(u16::MAX));
        let [head, servers, _gap, upstream, keys] = Layout::vertical([
            Constraint::Length(2),
            length(for_servers + 1),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(area);
        // On a narrow terminal the summary takes the line below it too.
        frame.render_widget(Paragraph::new(self.summary(style)).wrap(Wrap { trim: true }), head);
        self.draw_servers(frame, servers, scrolled, style);
        self.draw_upstream(frame, upstream, scrolled, style);
        if style.has_keys {
            let text = "q quit   up/down scroll   the page: cx ui";
            frame.render_widget(Paragraph::new(Line::styled(text, style.soft())), keys);
        }
    }

    fn summary(&self, style: Style) -> Line<'static> {
        if let Some(failure) = &self.watched.failure {
            let text = format!("cx top: the running servers cannot be listed: {}", one_line(failure));
            return Line::styled(text, style.bad());
        }
        let readings = || self.servers.iter().filter_map(|row| row.server.reading.numbers());
        let sum = |number: fn(&Reading) -> f64| count(total(readings().map(number)));
        let tokens = si(total(readings().map(|reading| reading.kept_out_tokens)));
        let text = format!(
            "{}  {} running  {} queued  {} in flight  {tokens} tokens kept out",
            counted(self.servers.len(), "server"),
            sum(|reading| reading.runs_active),
            sum(|reading| reading.runs_queued),
            sum(|reading| reading.calls_active),
        );
        Line::from(vec![Span::styled("cx top  ", style.bold()), Span::raw(text)])
    }

    fn draw_servers(&self, frame: &mut ratatui::Frame<'_>, area: Rect, scrolled: usize, style: Style) {
        if self.servers.is_empty() {
            let text = "no `cx serve` of yours is running";
            let lines = vec![Line::styled("SERVER", style.head()), Line::styled(text, style.soft())];
            frame.render_widget(Paragraph::new(lines), area);
            return;
        }
        let names = ["PID", "BY", "UP", "RUNS", "QUEUED", "ENDED", "FAILED", "P95", "RUN/S", "MEMORY", "IN"];
        let shown = fitting(area.width, &SERVER_WIDTHS, MIN_DIRECTORY, &SERVER_DISPENSABLE);
        // The space that the other columns and the gaps between them leave.
        let used: usize = only(SERVER_WIDTHS, &shown).map(|width| usize::from(width) + 1).sum();
        let rest = usize::from(area.width).saturating_sub(used);
        let widths =
            only(SERVER_WIDTHS.map(Constraint::Length), &shown).chain([Constraint::Min(MIN_DIRECTORY)]);
        let first =
            scrolled.min(self.servers.len().saturating_sub(usize::from(area.height).saturating_sub(1)));
        let mut rows = Vec::new();
        for ServerRow { server, note } in self.servers.iter().skip(first) {
            let directory = shown_path(&server.description.workspace);
            let directory = shorten_left(&directory, rest.max(usize::from(MIN_DIRECTORY)));
            rows.push(server_row(server, directory, &shown, style));
            if note.is_some() {
                rows.push(Row::new([Cell::from("")]));
            }
        }
        let table = Table::new(rows, widths).header(Row::new(only(names, &shown)).style(style.head()));
        frame.render_widget(table, area);
        // Notes are longer than a column, so they are drawn over the empty cells of their rows.
        let mut line = area.y + 1;
        for ServerRow { note, .. } in self.servers.iter().skip(first) {
            line += 1;
            let Some(note) = note else { continue };
            if line >= area.bottom() {
                break;
            }
            let below = Rect { x: area.x + 2, y: line, width: area.width.saturating_sub(2), height: 1 };
            frame.render_widget(Paragraph::new(Line::styled(one_line(note), style.warning())), below);
            line += 1;
        }
    }

    fn draw_upstream(&self, frame: &mut ratatui::Frame<'_>, area: Rect, scrolled: usize, style: Style) {
        if self.upstream.is_empty() {
            let text = "no upstream server has been seen in metrics";
            let lines = vec![Line::styled("UPSTREAM", style.head()), Line::styled(text, style.soft())];
            frame.render_widget(Paragraph::new(lines), area);
            return;
        }
        let names = ["UPSTREAM", "PID", "BREAKER", "FLIGHT", "QUEUED", "CALLS", "FAILED", "P95"];
        let mut shown = fitting(area.width, &UPSTREAM_WIDTHS, MIN_NAME, &UPSTREAM_DISPENSABLE);
        // The names.
        shown.insert(0, true);
        let widths = [Constraint::Min(MIN_NAME)].into_iter().chain(UPSTREAM_WIDTHS.map(Constraint::Length));
        let widths = only(widths, &shown);
        let visible = usize::from(area.height).saturating_sub(1);
        let first = scrolled.min(self.upstream.len().saturating_sub(visible));
        let rows = self.upstream.iter().skip(first).take(visible).map(|(server, name, upstream)| {
            let breaker = upstream.breaker_state();
            let breaker_style = if upstream.breaker > 0.0 { style.bad() } else { CellStyle::new() };
            let failed_style = if upstream.failed > 0.0 { style.warning() } else { CellStyle::new() };
            let cells = [
                Cell::from(one_line(name)),
                Cell::from(server.description.process.to_string()),
                Cell::from(Span::styled(breaker, breaker_style)),
                Cell::from(count(upstream.active)),
                Cell::from(count(upstream.queued)),
                Cell::from(count(upstream.calls)),
                Cell::from(Span::styled(count(upstream.failed), failed_style)),
                Cell::from(seconds(upstream.p95)),
            ];
            Row::new(only(cells, &shown))
        });
        let table = Table::new(rows, widths).header(Row::new(only(names, &shown)).style(style.head()));
        frame.render_widget(table, area);
    }
}

fn server_row(server: &WatchedServer, directory: String, shown: &[bool], style: Style) -> Row<'static> {
    let description = &server.description;
    let age = age(seconds_since_1970().saturating_sub(description.started));
    let begin = [description.process.to_string(), description.transport.as_str().to_owned(), age];
    let numbers = match server.reading.numbers() {
        Some(reading) => {
            let limit = if reading.runs_limit > 0.0 { count(reading.runs_limit) } else { "-".to_owned() };
            [
                format!("{}/{limit}", count(reading.runs_active)),
                count(reading.runs_queued + reading.engine_queued),
                count(reading.runs_ok + reading.runs_failed),
                count(reading.runs_failed),
                seconds(reading.run_p95),
                server.runs_per_second.map_or_else(|| "-".to_owned(), |runs| format!("{runs:.1}")),
                bytes(reading.resident_bytes),
            ]
        }
        None => std::array::from_fn(|_| "-".to_owned()),
    };
    let row = Row::new(only(begin.into_iter().chain(numbers).chain([directory]), shown).map(Cell::from));
    if server.reading.is_listening() { row } else { row.style(style.soft()) }
}

/// The note about a server, in addition to its numbers.
fn note(server: &WatchedServer) -> Option<String> {
    match &server.reading {
        ServerReading::NotListening => {
            Some("does not listen: start it with --metrics 127.0.0.1:0 to see its numbers".to_owned())
        }
        ServerReading::Failed(error) => Some(format!("its metrics cannot be read: {error}")),
        ServerReading::Read(reading) => {
            let problems = reading.problems();
            (!problems.is_empty()).then(|| problems.join(", "))
        }
    }
}

impl Style {
    fn color(self, color: Color) -> CellStyle {
        if self.has_color { CellStyle::new().fg(color) } else { CellStyle::new() }
    }

    fn bad(self) -> CellStyle {
        self.color(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn warning(self) -> CellStyle {
        self.color(Color::Yellow)
    }

    fn soft(self) -> CellStyle {
        CellStyle::new().add_modifier(Modifier::DIM)
    }

    fn bold(self) -> CellStyle {
        CellStyle::new().add_modifier(Modifier::BOLD)
    }

    fn head(self) -> CellStyle {
        CellStyle::new().add_modifier(Modifier::REVERSED)
    }
}

/// A whole number; large ones are shortened.
fn count(number: f64) -> String {
    if number < 100_000.0 { format!("{number:.0}") } else { si(number) }
}

fn si(number: f64) -> String {
    match number {
        number if number >= 1e9 => format!("{:.1}G", number / 1e9),
        number if number >= 1e6 => format!("{:.1}M", number / 1e6),
        number if number >= 1e4 => format!("{:.1}k", number / 1e3),
        number => format!("{number:.0}"),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size for people to read")]
fn bytes(number: f64) -> String {
    ByteSize::b(number as u64).display().si_short().to_string()
}

/// The bound of a histogram's bucket.
fn seconds(time: Option<f64>) -> String {
    match time {
        None => "-".to_owned(),
        Some(time) if time < 1.0 => format!("<{:.0}ms", time * 1e3),
        Some(time) => format!("<{time:.0}s"),
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{:02}", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// The end of a text that is too long. The end of a path is more informative than its beginning.
fn shorten_left(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let end: String = text.chars().skip(length + 1 - width.max(1)).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    #[test]
    fn the_summary_is_whole_on_a_narrow_terminal() {
        for (width, is_one_line) in [(80, true), (50, false)] {
            let mut terminal = Terminal::new(TestBackend::new(width, 24)).unwrap();
            let style = Style { has_color: false, has_keys: true };
            terminal.draw(|area| Frame::new(&Watched::default()).draw(area, 0, style)).unwrap();
            let cells = terminal.backend().buffer().content();
            let lines = cells.chunks(width.into()).take(2).map(|line| {
                let text: String = line.iter().map(|cell| cell.symbol()).collect();
                text.trim_end().to_owned()
            });
            let [first, second] = <[String; 2]>::try_from(lines.collect::<Vec<_>>()).unwrap();
            let whole = "cx top  0 servers  0 running  0 queued  0 in flight  0 tokens kept out";
            let shown: Vec<&str> = first.split_whitespace().chain(second.split_whitespace()).collect();
            assert_eq!(shown, whole.split_whitespace().collect::<Vec<_>>(), "{width}");
            assert_eq!(second.is_empty(), is_one_line, "{first}\n{second}");
        }
    }

    /// The columns that are left out at this width.
    fn left_out(width: u16, widths: &[u16], text: u16, dispensable: &[usize]) -> Vec<usize> {
        let shown = fitting(width, widths, text, dispensable);
        (0..shown.len()).filter(|column| !shown[*column]).collect()
    }

    #[test]
    fn a_narrow_terminal_has_fewer_columns_and_no_cut_numbers() {
        let servers = |width: u16| left_out(width, &SERVER_WIDTHS, MIN_DIRECTORY, &SERVER_DISPENSABLE);
        assert!(servers(80).is_empty() && servers(200).is_empty());
        assert_eq!(servers(79), [8]);
        assert_eq!(servers(60), [1, 7, 8, 9]);
        assert_eq!(servers(31), [1, 2, 4, 5, 7, 8, 9]);
        assert_eq!(servers(30), [1, 2, 4, 5, 6, 7, 8, 9]);
        assert_eq!(servers(20), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(servers(15).len(), SERVER_WIDTHS.len());
        let upstream = |width: u16| left_out(width, &UPSTREAM_WIDTHS, MIN_NAME, &UPSTREAM_DISPENSABLE);
        assert!(upstream(73).is_empty());
        assert_eq!(upstream(72), [0]);
        assert_eq!(upstream(60), [0, 6]);
        assert_eq!(upstream(26), [0, 2, 3, 4, 5, 6]);
        assert_eq!(upstream(25).len(), UPSTREAM_WIDTHS.len());
        let cells = ["pid", "by", "up", "in"];
        assert_eq!(only(cells, &[true, false, true]).collect::<Vec<_>>(), ["pid", "up", "in"]);
    }
}
