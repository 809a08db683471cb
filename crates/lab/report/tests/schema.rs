//! The JSON of a comparison is an interface: what this program writes satisfies the schema in the repository, and the schema
//! refuses what it should.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod sample;

use farhop_report::{Comparison, SCHEMA};
use serde_json::Value;

fn valid(json: &Value) -> bool {
    jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap().is_valid(json)
}

#[test]
fn what_is_written_satisfies_the_schema_and_reads_back() {
    let sample = sample::comparison();
    let json = serde_json::to_value(&sample).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let complaints: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
    assert_eq!(complaints, [""; 0]);
    let mut back: Comparison = serde_json::from_value(json).unwrap();
    for (page, original) in back.results.iter_mut().zip(&sample.results) {
        for (variant, original) in page.variants.iter_mut().zip(&original.variants) {
            // No part of the interface.
            variant.last_s = original.last_s;
            variant.waterfall = original.waterfall.clone();
        }
    }
    assert_eq!(back, sample);
}

#[test]
fn the_json_has_the_fields_that_its_readers_were_promised() {
    let json = serde_json::to_value(sample::comparison()).unwrap();
    let variant = &json["results"][0]["variants"][0];
    for pointer in
        ["/plt_s/median", "/fcp_s/min", "/ttfb_s/max", "/link_bytes/forward", "/link_packets/return"]
    {
        assert!(variant.pointer(pointer).is_some_and(Value::is_number), "{pointer}");
    }
    assert_eq!(variant["connections"].to_string(), "6", "whole medians are written as whole numbers");
    let limit = &json["results"][0]["limit"];
    assert!(["browser_s", "rtt_s", "origin_s", "bytes"].iter().all(|part| limit[part].is_number()));
}

#[test]
fn the_schema_refuses_missing_fields_unknown_ones_and_wrong_types() {
    let good = serde_json::to_value(sample::comparison()).unwrap();
    assert!(valid(&good));
    let mut missing = good.clone();
    missing["results"][0]["variants"][0].as_object_mut().unwrap().remove("requests_crossed");
    let mut unknown = good.clone();
    unknown["results"][0]["surprise"] = true.into();
    let mut wrong = good.clone();
    wrong["results"][0]["variants"][0]["runs"] = (-1).into();
    for bad in [missing, unknown, wrong] {
        assert!(!valid(&bad), "{bad}");
    }
}

#[test]
fn a_variant_without_a_load_that_counts_is_null_not_zero() {
    let mut sample = sample::comparison();
    sample.results[0].variants[0].plt_s = None;
    let json = serde_json::to_value(&sample).unwrap();
    assert!(json["results"][0]["variants"][0]["plt_s"].is_null());
    assert!(valid(&json));
}
