//! The time zone of scripts: a run's own time zone is used by everything that reads the local time, and by no other
//! run.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cx::{Error, Executor, Language, Limits, OptionName, Script};
use serde_json::{Value, json};

use crate::support::{executor, python, python_executor};

const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Pacific/Apia",
];

/// Seconds since 1970: around the changes of 2026 in several zones, in both halves of the year, and in years with other
/// rules.
const INSTANTS: &[i64] = &[
    0,
    86_399,
    946_684_800,
    1_000_000_000,
    1_325_239_200,
    1_325_239_199,
    1_767_225_600,
    1_772_953_199,
    1_772_953_200,
    1_774_745_999,
    1_774_746_000,
    1_775_314_799,
    1_775_314_800,
    1_782_864_000,
    1_791_043_200,
    1_792_889_999,
    1_792_890_000,
    1_793_512_800,
    2_145_916_800,
    4_102_444_800,
    -1_000_000_000,
];

/// For each instant: the fields, the offset in minutes, and the instant that the fields mean.
const TYPESCRIPT: &str = "
    return input.map((seconds) => {
        const d = new Date(seconds * 1000);
        const fields = [d.getFullYear(), d.getMonth() + 1, d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds()];
        const [year, month, ...rest] = fields;
        return [...fields, (d.getDay() + 6) % 7, -d.getTimezoneOffset(), new Date(year, month - 1, ...rest).getTime() / 1000];
    });";

const PYTHON: &str = "
from datetime import datetime
def row(seconds):
    d = datetime.fromtimestamp(seconds)
    fields = [d.year, d.month, d.day, d.hour, d.minute, d.second]
    return [*fields, d.weekday(), d.astimezone().utcoffset().total_seconds() // 60, datetime(*fields).timestamp()]
return [row(seconds) for seconds in inputs]";

/// Returns 'right' if everything agrees with the time zone that `input` names.
const TYPESCRIPT_AGREES: &str = r#"
    const zone = input, wrong: unknown[] = [];
    const same = (what: string, found: unknown, expected: unknown) => {
        if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push([what, found, expected]);
    };
    const name = new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
    same("resolved", Intl.DateTimeFormat().resolvedOptions().timeZone, name);
    same("resolved, new", new Intl.DateTimeFormat("de", { year: "numeric" }).resolvedOptions().timeZone, name);
    same("Temporal", Temporal.Now.timeZoneId(), name);
    const ticking = () => Temporal.Now.plainDateTimeISO().toString().slice(0, 15);
    let wall = "", now = new Date();
    do { wall = ticking(); now = new Date(); } while (wall !== ticking());
    const pad = (number: number) => String(number).padStart(2, "0");
    same("Temporal now", wall, `${now.getFullYear()}-${pad(now.getMonth() + 1)}-${pad(now.getDate())}T${pad(now.getHours())}:${pad(now.getMinutes())}`.slice(0, 15));
    for (const seconds of [0, 1e9, 1767225600, 1782864000, 1792893600]) {
        const date = new Date(seconds * 1000);
        for (const locale of [undefined, "en-US", "de", ["fr", "en"]]) {
            for (const method of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"] as const) {
                const named = date[method](locale, { timeZone: zone });
                same(method, date[method](locale), named);
                same(`${method}, again`, date[method](locale), named);
                same(`${method}, options`, date[method](locale, {}), named);
            }
            same("format", new Intl.DateTimeFormat(locale).format(date), date.toLocaleDateString(locale, { timeZone: zone }));
            const style = { timeStyle: "full", dateStyle: "full" } as const;
            same("style", date.toLocaleString(locale, style), date.toLocaleString(locale, { ...style, timeZone: zone }));
        }
        const zoned = Temporal.Instant.fromEpochMilliseconds(seconds * 1000).toZonedDateTimeISO(zone);
        same("hours", [date.getHours(), date.getMinutes()], [zoned.hour, zoned.minute]);
        const offset = zoned.offset.replace(":", "");
        same("string", date.toString().slice(0, 33), `${date.toDateString()} ${pad(zoned.hour)}:${pad(zoned.minute)}:${pad(zoned.second)} GMT${offset}`);
        same("parsed", Date.parse(zoned.toPlainDateTime().toString()), seconds * 1000);
        // An API that names a time zone uses that one.
        same("named", date.toLocaleString("en", { timeZone: "Asia/Tokyo" }), new Date(seconds * 1000 + 9 * 3600e3 + date.getTimezoneOffset() * 60e3).toLocaleString("en"));
        same("UTC", date.toISOString(), new Date(seconds * 1000).toJSON());
    }
    let read = 0;
    const options = Object.create({ get timeZone() { read++; return "Asia/Tokyo"; } });
    same("getter", [new Intl.DateTimeFormat("en", options).resolvedOptions().timeZone, read], ["Asia/Tokyo", 1]);
    const refused = (call: () => unknown) => { try { call(); return "taken"; } catch (error) { return error.name; } };
    same("null", refused(() => new Date().toLocaleString("en", null)), "TypeError");
    same("null zone", refused(() => Intl.DateTimeFormat("en", { timeZone: null })), "RangeError");
    same("no date", refused(() => Date.prototype.toLocaleString.call({})), "TypeError");
    same("invalid", new Date(NaN).toLocaleTimeString(), "Invalid Date");
    return wrong.length ? wrong : "right";
"#;

const PYTHON_AGREES: &str = r#"
import datetime as module, email.utils, logging, os, time
from datetime import date, datetime, timezone
from time import localtime, mktime, strftime
from zoneinfo import ZoneInfo

zone, wrong = ZoneInfo(inputs), []
def same(what, found, expected):
    if found != expected: wrong.append([what, str(found), str(expected)])

class Own(datetime): pass
for seconds in (0, 1e9, 1767225600, 1782864000, 1792890000, 1792886400.5):
    expected = datetime.fromtimestamp(seconds, zone)
    naive = expected.replace(tzinfo=None)
    local = time.localtime(seconds)
    same("localtime", tuple(local)[:6], tuple(expected.timetuple())[:6])
    same("is_dst", local.tm_isdst, int(bool(expected.dst())))
    same("zone", (local.tm_zone, local.tm_gmtoff), (expected.tzname(), expected.utcoffset().total_seconds()))
    same("by name", localtime(seconds), local)
    same("mktime", time.mktime(local), seconds // 1)
    same("mktime by name", mktime(local), seconds // 1)
    same("strftime", time.strftime("%Y-%m-%d %H:%M:%S %Z %z", local), expected.strftime("%Y-%m-%d %H:%M:%S %Z %z"))
    same("ctime", time.ctime(seconds), expected.ctime())
    same("fromtimestamp", [datetime.fromtimestamp(seconds), datetime.fromtimestamp(seconds).fold], [naive, naive.fold])
    same("timestamp", naive.timestamp(), seconds)
    same("astimezone", [naive.astimezone().isoformat(), naive.astimezone().tzname()], [expected.isoformat(), expected.tzname()])
    same("astimezone of another", datetime.fromtimestamp(seconds, timezone.utc).astimezone().isoformat(), expected.isoformat())
    same("astimezone to another", naive.astimezone(timezone.utc).isoformat(), expected.astimezone(timezone.utc).isoformat())
    same("date", date.fromtimestamp(seconds), expected.date())
    same("own class", [Own.fromtimestamp(seconds), type(Own.fromtimestamp(seconds))], [naive, Own])
    same("mail", email.utils.format_datetime(naive.astimezone()), email.utils.format_datetime(expected))
    same("logging", tuple(logging.Formatter().converter(seconds)), tuple(local))
now = datetime.now(zone)
same("now", abs((datetime.now() - now.replace(tzinfo=None)).total_seconds()) < 60, True)
same("own now", [type(Own.now()), abs(Own.now().timestamp() - now.timestamp()) < 60], [Own, True])
same("now elsewhere", abs((datetime.now(tz=timezone.utc) - now).total_seconds()) < 60, True)
same("today", date.today() in (now.date(), datetime.now(zone).date()), True)
same("today, datetime", abs((datetime.today() - now.replace(tzinfo=None)).total_seconds()) < 60, True)
same("strftime now", strftime("%Z"), now.tzname())
same("asctime", time.asctime()[:10], now.ctime()[:10])
same("type", [type(datetime.now()) is datetime, module.datetime is datetime], [True, True])
year = now.year
names = {datetime(year, month, 1, tzinfo=zone).tzname() for month in (1, 7)}
offsets = {-datetime(year, month, 1, tzinfo=zone).utcoffset().total_seconds() for month in (1, 7)}
same("tzname", set(time.tzname), names)
same("timezone", {time.timezone, time.altzone}, offsets)
same("daylight", time.daylight, int(len(offsets) > 1))
for name in names - {"UTC"}:
    # An offset for a name is no abbreviation.
    if name.isalpha():
        same("strptime", time.strptime(f"2026-01-02 {name}", "%Y-%m-%d %Z").tm_zone, name)
if inputs == "Europe/Berlin":
    same("isdst", [mktime((2026, 10, 25, 2, 30, 0, 0, 0, isdst)) for isdst in (1, 0)], [1792888200.0, 1792891800.0])
    same("overflow", mktime((2026, 1, 32, 25, 61, 61, 0, 0, -1)), 1769994121.0)
    same("far", [tuple(localtime(-10**11))[:4], localtime(10**12).tm_zone], [(-1199, 2, 15, 15), "CEST"])
for call in (lambda: localtime("x"), lambda: mktime("x"), lambda: mktime((1, 2)), lambda: datetime.fromtimestamp("x")):
    try: call(); wrong.append("taken")
    except TypeError: pass
same("TZ", os.environ.get("TZ"), None if inputs == "UTC" else inputs)
return wrong or "right"
"#;

fn script(language: &str, source: &str) -> Script {
    if language == "ts" { Script::typescript(source) } else { Script::python(source) }
}

async fn value(executor: &Executor, script: Script) -> Value {
    let result = executor.run(script).await.unwrap();
    result.value().cloned().unwrap_or_else(|| panic!("{}", result.to_json()))
}

#[tokio::test]
async fn both_languages_have_the_same_local_time() {
    let (executor, _) = python().await;
    for zone in ZONES {
        let rows = async |language, source| {
            let script = script(language, source).time_zone(*zone).input(json!(INSTANTS));
            let rows = value(&executor, script).await;
            // Python's numbers have a fraction.
            serde_json::from_value::<Vec<Vec<f64>>>(rows).unwrap()
        };
        let (typescript, python) = (rows("ts", TYPESCRIPT).await, rows("py", PYTHON).await);
        assert_eq!(typescript.len(), INSTANTS.len());
        for ((instant, one), other) in INSTANTS.iter().zip(&typescript).zip(&python) {
            assert_eq!(one, other, "{instant} in {zone}");
        }
        let at = |instant: i64| {
            let index = INSTANTS.iter().position(|known| *known == instant).unwrap();
            typescript[index].iter().map(|number| *number as i64).collect::<Vec<_>>()
        };
        match *zone {
            "UTC" => assert_eq!(at(1_782_864_000), [2026, 7, 1, 0, 0, 0, 2, 0, 1_782_864_000]),
            "Europe/Berlin" => {
                assert_eq!(at(1_774_745_999), [2026, 3, 29, 1, 59, 59, 6, 60, 1_774_745_999]);
                assert_eq!(at(1_774_746_000), [2026, 3, 29, 3, 0, 0, 6, 120, 1_774_746_000]);
            }
            "Pacific/Apia" => {
                // It skipped the 30th of December 2011.
                assert_eq!(at(1_325_239_199)[..3], [2011, 12, 29]);
                assert_eq!(at(1_325_239_200)[..3], [2011, 12, 31]);
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn everything_that_reads_the_local_time_agrees() {
    let (executor, _) = python().await;
    for zone in ZONES {
        for (language, source) in [("ts", TYPESCRIPT_AGREES), ("py", PYTHON_AGREES)] {
            let script = script(language, source).time_zone(*zone).input(json!(zone));
            assert_eq!(value(&executor, script).await, json!("right"), "{language} in {zone}");
        }
    }
    // The process keeps nothing of it.
    for (language, source) in [("ts", TYPESCRIPT_AGREES), ("py", PYTHON_AGREES)] {
        assert_eq!(value(&executor, script(language, source).input(json!("UTC"))).await, json!("right"));
    }
}

/// ICU has one default for the whole process.
#[tokio::test(flavor = "multi_thread")]
async fn runs_at_the_same_time_keep_their_time_zones() {
    const TYPESCRIPT: &str = "
        const seen = new Set();
        for (let i = 0; i < 150; i++) {
            if (i % 50 === 0) await new Promise((done) => setTimeout(done, 1));
            const date = new Date(1782864000000 + i * 7 * 86400e3);
            // Each makes V8 read the time zone again.
            const hour = new Date(date.getFullYear(), 6, 1).getTimezoneOffset();
            seen.add(`${hour} ${Intl.DateTimeFormat('en').resolvedOptions().timeZone} ${new Date(0).toLocaleTimeString('en-GB', { hour: '2-digit' })}`);
            seen.add(`${hour} ${Intl.DateTimeFormat('en').resolvedOptions().timeZone} ${String(new Date(0).getHours()).padStart(2, '0')}`);
        }
        return [...seen];";
    const PYTHON: &str = "
import asyncio, time
from datetime import datetime
seen = set()
for i in range(30):
    if i % 10 == 0: await asyncio.sleep(0.001)
    seen.add((-int(datetime(2026, 7, 1).astimezone().utcoffset().total_seconds()) // 60, time.localtime(0).tm_hour))
return sorted(seen)";
    // However long they wait for a place, which is longer on a machine that has little memory or is busy.
    let (builder, _) = python_executor::builder();
    let executor = builder.queue_timeout(Duration::from_secs(300)).build().unwrap();
    executor.warm(Language::Python).await.unwrap();
    let expected = [
        ("UTC", 0, "00"),
        ("Europe/Berlin", -120, "01"),
        ("America/New_York", 240, "19"),
        ("Asia/Tokyo", -540, "09"),
        ("Pacific/Honolulu", 600, "14"),
    ];
    let mut runs = (0..120).map(|index| {
        let (zone, offset, hour) = expected[index % expected.len()];
        let executor = executor.clone();
        async move {
            let limits = Limits { wall_time: Duration::from_secs(300), ..Limits::default() };
            if index % 4 == 3 {
                let script = Script::python(PYTHON).time_zone(zone).limits(limits);
                let hour: i64 = hour.parse().unwrap();
                assert_eq!(value(&executor, script).await, json!([[offset, hour]]), "{zone}");
                return;
            }
            let mut script = Script::typescript(TYPESCRIPT).limits(limits);
            if zone != "UTC" {
                script = script.time_zone(zone);
            }
            assert_eq!(value(&executor, script).await, json!([format!("{offset} {zone} {hour}")]));
        }
    });
    // In two halves, because not all have a place at the same time.
    for _ in 0..2 {
        futures::future::join_all(runs.by_ref().take(60)).await;
    }
}

#[tokio::test]
async fn every_name_is_known_to_both_languages() {
    let names: Vec<&str> = include_str!("../../../src/run/time_zones.txt").lines().collect();
    let (executor, _) = python().await;
    let typescript = "return input.filter((zone) => {
        try { return !new Date(0).toLocaleString('en', { timeZone: zone }); } catch { return true; }
    })";
    let python = "
import zoneinfo
known = zoneinfo.available_timezones()
return [[name for name in inputs if name not in known], sorted(known - set(inputs))]";
    assert_eq!(value(&executor, Script::typescript(typescript).input(json!(names))).await, json!([]));
    assert_eq!(value(&executor, Script::python(python).input(json!(names))).await, json!([[], []]));
}

#[tokio::test]
async fn a_wrong_name_is_an_error_before_anything_runs() {
    let (executor, mock) = executor();
    for wrong in ["Europe/Berln", "+02:00", "", "europe/berlin", "../UTC", "Europe/Berlin\0"] {
        for language in ["ts", "py"] {
            let script = script(language, "await tools.mock.echo()").time_zone(wrong);
            let error = executor.run(script.clone()).await.unwrap_err();
            assert!(matches!(error, Error::InvalidOptions { option: OptionName::TimeZone, .. }), "{error:?}");
            let error = executor.check(script).await.err().unwrap();
            assert!(matches!(error, Error::InvalidOptions { option: OptionName::TimeZone, .. }), "{error:?}");
        }
    }
    assert_eq!(mock.calls.load(Ordering::Relaxed), 0);
    let error =
        executor.run(Script::typescript("1").time_zone("Europe/Berln")).await.unwrap_err().to_string();
    assert!(error.contains("did you mean `Europe/Berlin`?"), "{error}");
    let built = Executor::builder().time_zone("Mars").build();
    assert!(matches!(built, Err(Error::InvalidOptions { option: OptionName::TimeZone, .. })), "{built:?}");
}

#[tokio::test]
async fn an_executor_has_a_time_zone_for_scripts_that_name_none() {
    let (builder, _) = python_executor::builder();
    let executor = builder.time_zone("Asia/Tokyo").build().unwrap();
    let (typescript, python) = ("new Date(0).getHours()", "import time\ntime.localtime(0).tm_hour");
    for (language, source) in [("ts", typescript), ("py", python)] {
        assert_eq!(value(&executor, script(language, source)).await, json!(9));
        assert_eq!(value(&executor, script(language, source).time_zone("UTC")).await, json!(0));
        assert_eq!(value(&executor, script(language, source).time_zone("Asia/Kolkata")).await, json!(5));
    }
}
