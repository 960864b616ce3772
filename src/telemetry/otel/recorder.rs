//! Exports the metrics of the `metrics` facade, and passes them on to another recorder.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use opentelemetry::KeyValue;
use opentelemetry::metrics as otel;
use parking_lot::Mutex;

use crate::conventions::{HISTOGRAMS, LABELS, MODEL_TOKENS};

/// Upper bounds in seconds of the buckets of histograms that the conventions do not define.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0];

type Next = Box<dyn Recorder + Send + Sync>;

/// A recorder that passes everything on to another one.
pub(crate) struct OtelRecorder {
    meter: otel::Meter,
    next: Option<Next>,
    state: Mutex<RecorderState>,
}

/// Instruments by name, and by name and labels. Labels have few values, so both are small.
#[derive(Default)]
struct RecorderState {
    descriptions: HashMap<String, (Option<Unit>, SharedString)>,
    counters: HashMap<Key, Counter>,
    gauges: HashMap<Key, Gauge>,
    histograms: HashMap<Key, Histogram>,
    /// The counts of counters, by name.
    counts: HashMap<String, Arc<Values>>,
    /// The values of gauges, by name.
    values: HashMap<String, Arc<Values>>,
}

/// The values of one metric's name, by their labels. The exporter reads them when it collects, so that counting is one
/// atomic operation; the SDK's own counters look the labels up each time.
#[derive(Default)]
struct Values(Mutex<Vec<(Vec<KeyValue>, Arc<AtomicU64>)>>);

impl Values {
    /// Adds a value. `bits` is a count, or the bits of an `f64`.
    fn add(&self, key: &Key, bits: &Arc<AtomicU64>) {
        self.0.lock().push((attributes(key), Arc::clone(bits)));
    }

    fn for_each(&self, observe: impl Fn(u64, &[KeyValue])) {
        for (attributes, bits) in self.0.lock().iter() {
            observe(bits.load(Ordering::Relaxed), attributes);
        }
    }
}

/// Adds a value for `key` to those of its name. If it is the first of its name, returns them too, for an instrument to
/// read.
fn add_value(all: &mut HashMap<String, Arc<Values>>, key: &Key) -> (Arc<AtomicU64>, Option<Arc<Values>>) {
    let value = Arc::<AtomicU64>::default();
    if let Some(values) = all.get(key.name()) {
        values.add(key, &value);
        return (value, None);
    }
    let values = Arc::<Values>::default();
    values.add(key, &value);
    all.insert(key.name().to_owned(), Arc::clone(&values));
    (value, Some(values))
}

impl OtelRecorder {
    pub(crate) fn new(meter: otel::Meter, next: Option<Next>) -> Self {
        Self { meter, next, state: Mutex::default() }
    }

    fn describe(&self, name: &KeyName, unit: Option<Unit>, description: SharedString) {
        self.state.lock().descriptions.insert(name.as_str().to_owned(), (unit, description));
    }
}

/// The exported name: that of the semantic conventions, if they define the metric.
fn exported_name(name: &str) -> String {
    let convention = HISTOGRAMS.iter().find(|(_, counted, _)| *counted == name);
    convention.map_or(name, |(conventional, ..)| conventional).to_owned()
}

fn attributes(key: &Key) -> Vec<KeyValue> {
    let name = |label: &str| {
        let convention = LABELS.iter().find(|(counted, _)| *counted == label);
        convention.map_or_else(|| label.to_owned(), |(_, conventional)| (*conventional).to_owned())
    };
    key.labels().map(|label| KeyValue::new(name(label.key()), label.value().to_owned())).collect()
}

/// The unit and the description of a metric.
fn described(state: &RecorderState, name: &str) -> (&'static str, String) {
    let (unit, description) = state.descriptions.get(name).cloned().unwrap_or((None, "".into()));
    let unit = match unit {
        Some(Unit::Seconds) => "s",
        Some(Unit::Bytes) => "By",
        _ if name == MODEL_TOKENS => "{token}",
        _ => "1",
    };
    (unit, description.into_owned())
}

impl Recorder for OtelRecorder {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.describe(&key, unit, description.clone());
        if let Some(next) = &self.next {
            next.describe_counter(key, unit, description);
        }
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.describe(&key, unit, description.clone());
        if let Some(next) = &self.next {
            next.describe_gauge(key, unit, description);
        }
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.describe(&key, unit, description.clone());
        if let Some(next) = &self.next {
            next.describe_histogram(key, unit, description);
        }
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        let mut state = self.state.lock();
        if let Some(counter) = state.counters.get(key) {
            return counter.clone();
        }
        let (count, added) = add_value(&mut state.counts, key);
        if let Some(counts) = added {
            let (unit, description) = described(&state, key.name());
            let instrument = self.meter.u64_observable_counter(exported_name(key.name()));
            // The meter keeps the callback, which takes no lock but that of the values.
            instrument
                .with_unit(unit)
                .with_description(description)
                .with_callback(move |observer| {
                    counts.for_each(|count, attributes| observer.observe(count, attributes));
                })
                .build();
        }
        let counter = Counter::from_arc(Arc::new(ForwardingCounter {
            count,
            next: self.next.as_ref().map(|next| next.register_counter(key, metadata)),
        }));
        state.counters.insert(key.clone(), counter.clone());
        counter
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        let mut state = self.state.lock();
        if let Some(gauge) = state.gauges.get(key) {
            return gauge.clone();
        }
        let (value, added) = add_value(&mut state.values, key);
        if let Some(values) = added {
            let (unit, description) = described(&state, key.name());
            let instrument = self.meter.f64_observable_gauge(exported_name(key.name()));
            instrument
                .with_unit(unit)
                .with_description(description)
                .with_callback(move |observer| {
                    values.for_each(|bits, attributes| observer.observe(f64::from_bits(bits), attributes));
                })
                .build();
        }
        let gauge = Gauge::from_arc(Arc::new(ForwardingGauge {
            value,
            next: self.next.as_ref().map(|next| next.register_gauge(key, metadata)),
        }));
        state.gauges.insert(key.clone(), gauge.clone());
        gauge
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        let mut state = self.state.lock();
        if let Some(histogram) = state.histograms.get(key) {
            return histogram.clone();
        }
        let (unit, description) = described(&state, key.name());
        let convention = HISTOGRAMS.iter().find(|(_, counted, _)| *counted == key.name());
        let buckets = convention.map_or(SECONDS, |(.., buckets)| buckets).to_vec();
        let instrument = self.meter.f64_histogram(exported_name(key.name())).with_boundaries(buckets);
        let histogram = Histogram::from_arc(Arc::new(ForwardingHistogram {
            instrument: instrument.with_unit(unit).with_description(description).build(),
            attributes: attributes(key),
            next: self.next.as_ref().map(|next| next.register_histogram(key, metadata)),
        }));
        state.histograms.insert(key.clone(), histogram.clone());
        histogram
    }
}

struct ForwardingCounter {
    count: Arc<AtomicU64>,
    next: Option<Counter>,
}

impl CounterFn for ForwardingCounter {
    fn increment(&self, value: u64) {
        self.count.fetch_add(value, Ordering::Relaxed);
        if let Some(next) = &self.next {
            next.increment(value);
        }
    }

    fn absolute(&self, value: u64) {
        self.count.fetch_max(value, Ordering::Relaxed);
        if let Some(next) = &self.next {
            next.absolute(value);
        }
    }
}

struct ForwardingGauge {
    /// The bits of the value.
    value: Arc<AtomicU64>,
    next: Option<Gauge>,
}

impl ForwardingGauge {
    fn change(&self, change: impl Fn(f64) -> f64) {
        let changed = |bits: u64| Some(change(f64::from_bits(bits)).to_bits());
        // Never fails, because `changed` always returns a value.
        let _before = self.value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    }
}

impl GaugeFn for ForwardingGauge {
    fn increment(&self, value: f64) {
        self.change(|current| current + value);
        if let Some(next) = &self.next {
            next.increment(value);
        }
    }

    fn decrement(&self, value: f64) {
        self.change(|current| current - value);
        if let Some(next) = &self.next {
            next.decrement(value);
        }
    }

    fn set(&self, value: f64) {
        self.value.store(value.to_bits(), Ordering::Relaxed);
        if let Some(next) = &self.next {
            next.set(value);
        }
    }
}

struct ForwardingHistogram {
    instrument: otel::Histogram<f64>,
    attributes: Vec<KeyValue>,
    next: Option<Histogram>,
}

impl HistogramFn for ForwardingHistogram {
    fn record(&self, value: f64) {
        self.instrument.record(value, &self.attributes);
        if let Some(next) = &self.next {
            next.record(value);
        }
    }
}
