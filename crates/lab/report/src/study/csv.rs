//! What a plan found as CSV (RFC 4180): one line for each cell and measure. Pure.

use super::Study;

/// All cells, with a header.
pub fn study_csv(study: &Study) -> String {
    let mut out =
        "plan,page,link,variant,measure,unit,runs,late,median,mean,p95,min,max,low,high\r\n".to_owned();
    for cell in &study.cells {
        for (measure, values) in &cell.values {
            let ends = values
                .interval
                .map_or([String::new(), String::new()], |ends| ends.map(|end| end.to_string()));
            let [low, high] = ends;
            let line = [
                study.plan.clone(),
                cell.page.clone(),
                cell.link.clone(),
                cell.variant.clone(),
                measure.clone(),
                study.unit(measure).to_owned(),
                cell.runs.to_string(),
                cell.late.to_string(),
                values.median.to_string(),
                values.mean.to_string(),
                values.p95.to_string(),
                values.min.to_string(),
                values.max.to_string(),
                low,
                high,
            ];
            out.push_str(&line.map(|field| quoted(&field)).join(","));
            out.push_str("\r\n");
        }
    }
    out
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_rfc_4180_wants_it() {
        assert_eq!(quoted("plain text"), "plain text");
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
    }
}
