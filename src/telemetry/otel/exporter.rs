//! The exporter of spans: that of the SDK, which knows the standard variables, sends and tries again, with bodies that
//! [`encode`](super::encode) has written.

use std::fmt;
use std::time::Duration;

use opentelemetry_otlp::SpanExporter as OtlpExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use super::client::PreparedBody;
use super::encode::{encode_request, encode_resource};

/// Encodes spans, and lets the SDK's exporter send them.
pub(super) struct BatchExporter {
    /// Exports no spans, so that all it does is to send a request.
    sender: OtlpExporter,
    body: PreparedBody,
    /// The message of the resource.
    resource: Vec<u8>,
}

impl BatchExporter {
    /// `sender` sends with a [`BodyClient`](super::client::BodyClient) for this body.
    pub(super) fn new(sender: OtlpExporter, body: PreparedBody) -> Self {
        Self { sender, body, resource: Vec::new() }
    }
}

impl SpanExporter for BatchExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.body.set(encode_request(&self.resource, &batch));
        drop(batch);
        let exported = self.sender.export(Vec::new()).await;
        self.body.set(Vec::new());
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.sender.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.sender.shutdown()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = encode_resource(resource);
    }
}

impl fmt::Debug for BatchExporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("BatchExporter")
    }
}
