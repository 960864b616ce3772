//! The files that the schedulers of the systems read.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::args::Scheduler;

/// The name of the timer, the agent and the task.
pub(super) const NAME: &str = "cx-sync";

/// The label of launchd's agent, a reversed domain name.
pub(super) const LABEL: &str = "dev.cx.sync";

/// The first line of the file, for a person who finds it.
const ABOUT: &str = "Written by cx: see `cx help sync`, which also says how to remove it.";

/// The description that the scheduler shows.
const DESCRIPTION: &str = "Refreshes what cx knows of MCP servers";

/// A file of a scheduler.
pub(super) struct Unit {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// The daily command and its time.
pub(super) struct Job {
    /// An absolute path.
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    /// The directory that it is run in.
    pub(super) home: String,
    /// Variables that a scheduler does not have by itself.
    pub(super) environment: Vec<(String, String)>,
    pub(super) hour: u64,
    pub(super) minute: u64,
}

impl Job {
    /// Checks that all values can be represented in the schedulers' files.
    ///
    /// # Errors
    ///
    /// The value that cannot.
    pub(super) fn check(&self) -> Result<(), String> {
        let values = self.environment.iter().map(|(_, value)| value);
        let mut all = self.arguments.iter().chain([&self.program, &self.home]).chain(values);
        // XML has no way to write the last two.
        let is_unwritable =
            |character: char| character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}');
        if let Some(text) = all.find(|text| text.chars().any(is_unwritable)) {
            return Err(format!("{text:?} has a control character, which the system's files cannot have"));
        }
        // The directory is not quoted in systemd's files, where a backslash at the end of a line continues it, and
        // spaces there are ignored.
        if self.home.ends_with(|last: char| last == '\\' || last.is_whitespace()) {
            return Err(format!(
                "{:?} ends with a backslash or a space, which the system's files cannot have",
                self.home
            ));
        }
        Ok(())
    }

    /// The files of a scheduler, first the one that starts the others.
    pub(super) fn paths(scheduler: Scheduler, directory: &Path) -> Vec<PathBuf> {
        match scheduler {
            Scheduler::Systemd => {
                ["timer", "service"].map(|kind| directory.join(format!("{NAME}.{kind}"))).to_vec()
            }
            Scheduler::Launchd => vec![directory.join(format!("{LABEL}.plist"))],
            Scheduler::Windows => vec![directory.join(format!("{NAME}.xml"))],
        }
    }

    /// The files of a scheduler with their texts.
    pub(super) fn units(&self, scheduler: Scheduler, directory: &Path) -> Vec<Unit> {
        let texts = match scheduler {
            Scheduler::Systemd => vec![self.systemd_timer(), self.systemd_service()],
            Scheduler::Launchd => vec![self.launchd()],
            Scheduler::Windows => vec![self.windows()],
        };
        let paths = Self::paths(scheduler, directory);
        paths.into_iter().zip(texts).map(|(path, text)| Unit { path, text }).collect()
    }

    /// systemd.timer(5). A run that was missed while the machine was off is made up for.
    fn systemd_timer(&self) -> String {
        let (hour, minute) = (self.hour, self.minute);
        format!(
            "# {ABOUT}\n[Unit]\nDescription={DESCRIPTION}\n\n[Timer]\nOnCalendar=*-*-* {hour:02}:{minute:02}:00\n\
             Persistent=true\n\n[Install]\nWantedBy=timers.target\n"
        )
    }

    /// systemd.service(5).
    fn systemd_service(&self) -> String {
        let mut text = format!("# {ABOUT}\n[Unit]\nDescription={DESCRIPTION}\n\n[Service]\nType=oneshot\n");
        for (name, value) in &self.environment {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "Environment={}", systemd_quoted(&format!("{name}={value}")));
        }
        let _ = writeln!(text, "WorkingDirectory={}", self.home.replace('%', "%%"));
        let mut line = systemd_quoted(&self.program);
        for argument in &self.arguments {
            // Variables are not expanded in the first word; they are in the others.
            line.push(' ');
            line.push_str(&systemd_quoted(argument).replace('$', "$$"));
        }
        let _ = write!(text, "ExecStart={line}\nNice=10\nTimeoutStartSec=15min\n");
        text
    }

    /// launchd.plist(5).
    fn launchd(&self) -> String {
        let mut words = String::new();
        for word in [&self.program].into_iter().chain(&self.arguments) {
            let _ = writeln!(words, "    <string>{}</string>", xml(word));
        }
        let mut variables = String::new();
        for (name, value) in &self.environment {
            let _ = writeln!(variables, "    <key>{}</key><string>{}</string>", xml(name), xml(value));
        }
        let (home, hour, minute) = (xml(&self.home), self.hour, self.minute);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
             \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<!-- {ABOUT} -->\n<plist version=\"1.0\">\n<dict>\n  \
             <key>Label</key><string>{LABEL}</string>\n  <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n  \
             <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n  \
             <key>WorkingDirectory</key><string>{home}</string>\n  <key>StartCalendarInterval</key>\n  <dict>\n    \
             <key>Hour</key><integer>{hour}</integer>\n    <key>Minute</key><integer>{minute}</integer>\n  </dict>\n  \
             <key>ProcessType</key><string>Background</string>\n</dict>\n</plist>\n",
        )
    }

    /// A task of Windows' Task Scheduler, version 1.2 of its schema.
    fn windows(&self) -> String {
        let arguments: Vec<String> = self.arguments.iter().map(|argument| windows_quoted(argument)).collect();
        let arguments = xml(&arguments.join(" "));
        let (program, home) = (xml(&self.program), xml(&self.home));
        let (hour, minute) = (self.hour, self.minute);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <Task version=\"1.2\" xmlns=\"http://schemas.microsoft.com/windows/2004/02/mit/task\">\n  \
             <RegistrationInfo>\n    <Description>{DESCRIPTION}. {ABOUT}</Description>\n  </RegistrationInfo>\n  \
             <Triggers>\n    <CalendarTrigger>\n      \
             <StartBoundary>2026-01-01T{hour:02}:{minute:02}:00</StartBoundary>\n      \
             <Enabled>true</Enabled>\n      \
             <ScheduleByDay>\n        <DaysInterval>1</DaysInterval>\n      </ScheduleByDay>\n    \
             </CalendarTrigger>\n  </Triggers>\n  \
             <Principals>\n    <Principal id=\"Author\">\n      <LogonType>InteractiveToken</LogonType>\n      \
             <RunLevel>LeastPrivilege</RunLevel>\n    </Principal>\n  </Principals>\n  \
             <Settings>\n    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>\n    \
             <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>\n    \
             <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>\n    \
             <StartWhenAvailable>true</StartWhenAvailable>\n    \
             <ExecutionTimeLimit>PT15M</ExecutionTimeLimit>\n  </Settings>\n  \
             <Actions Context=\"Author\">\n    <Exec>\n      <Command>{program}</Command>\n      \
             <Arguments>{arguments}</Arguments>\n      <WorkingDirectory>{home}</WorkingDirectory>\n    \
             </Exec>\n  </Actions>\n</Task>\n"
        )
    }
}

/// A word in double quotes, as systemd reads it. `%` begins a specifier.
fn systemd_quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

/// A word as programs of Windows split their command line: backslashes before a quote are doubled.
fn windows_quoted(word: &str) -> String {
    if !word.is_empty() && !word.contains([' ', '\t', '"']) {
        return word.to_owned();
    }
    let mut quoted = String::from("\"");
    let mut backslashes = 0;
    for character in word.chars() {
        match character {
            '\\' => backslashes += 1,
            '"' => {
                quoted.push_str(&"\\".repeat(backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        quoted.push(character);
    }
    quoted.push_str(&"\\".repeat(backslashes));
    quoted.push('"');
    quoted
}

/// Text in an element of XML.
fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
