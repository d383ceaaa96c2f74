//! Draws plots.

use std::error::Error;
use std::ops::Range;

use plotters::prelude::*;

use super::findings::{Axis, Corner, Plot, Scale};

const SIZE: (u32, u32) = (860, 420);

/// A margin above the highest line.
const HEADROOM: f64 = 1.05;

/// Colours that colour-blind readers can distinguish.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

impl Plot {
    /// Draws the plot as SVG.
    ///
    /// # Errors
    ///
    /// The drawing library's errors, which do not occur in practice.
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        let mut svg = String::new();
        self.draw(&mut svg)?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn Error>> {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let points = || self.series.iter().flat_map(|series| &series.points);
        let across = self.across.range(points().map(|point| point.0));
        let up = self.up.range(points().map(|point| point.1));
        let up = up.start..up.end * HEADROOM;
        let mut chart = ChartBuilder::on(&root)
            .caption(&self.title, ("sans-serif", 18))
            .margin(14)
            .x_label_area_size(42)
            .y_label_area_size(70)
            .build_cartesian_2d(across.clone(), up.clone())?;
        chart
            .configure_mesh()
            .x_desc(&self.across.name)
            .y_desc(&self.up.name)
            .x_labels(self.across.labels(&across))
            .y_labels(self.up.labels(&up))
            .x_label_formatter(&|&place| self.across.label(place))
            .y_label_formatter(&|&place| self.up.label(place))
            .light_line_style(WHITE)
            .draw()?;
        for (place, (series, colour)) in self.series.iter().zip(COLOURS).enumerate() {
            // Thinner than the previous line, which stays visible where both are the same.
            let style = colour.stroke_width((self.series.len() - place) as u32 + 1);
            let points = series.points.iter();
            let points = points.map(|&(x, y)| (self.across.place(x), self.up.place(y)));
            let line = LineSeries::new(points, style);
            chart
                .draw_series(line)?
                .label(&series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        chart
            .configure_series_labels()
            .position(match self.legend {
                Corner::UpperLeft => SeriesLabelPosition::UpperLeft,
                Corner::UpperRight => SeriesLabelPosition::UpperRight,
                Corner::Right => SeriesLabelPosition::MiddleRight,
            })
            .background_style(WHITE.mix(0.8))
            .border_style(RGBColor(200, 200, 200))
            .draw()?;
        root.present()?;
        drop(chart);
        Ok(())
    }
}

impl Axis {
    /// The position of a number.
    fn place(&self, number: f64) -> f64 {
        match self.scale {
            Scale::Linear | Scale::Steps(_) => number,
            Scale::Logarithmic => number.max(1e-3).log10(),
        }
    }

    /// The range of positions.
    fn range(&self, numbers: impl Iterator<Item = f64>) -> Range<f64> {
        let places: Vec<_> = numbers.map(|number| self.place(number)).collect();
        let most = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match &self.scale {
            Scale::Linear if most > 0.0 => 0.0..most,
            Scale::Linear => 0.0..1.0,
            Scale::Logarithmic => {
                let least = places.iter().copied().fold(f64::INFINITY, f64::min).floor();
                least..most.ceil().max(least + 1.0)
            }
            Scale::Steps(steps) => 0.0..steps.len().saturating_sub(1).max(1) as f64,
        }
    }

    /// The maximum number of labels.
    fn labels(&self, range: &Range<f64>) -> usize {
        match &self.scale {
            Scale::Linear => 11,
            Scale::Logarithmic => (range.end - range.start) as usize + 1,
            Scale::Steps(steps) => steps.len(),
        }
    }

    /// The label of a position.
    fn label(&self, place: f64) -> String {
        match &self.scale {
            Scale::Linear if place >= 10_000.0 => format!("{}k", place / 1e3),
            // Rounds errors such as that of 0.1 + 0.2.
            Scale::Linear => format!("{}", (place * 1e6).round() / 1e6),
            Scale::Logarithmic if place >= 0.0 => format!("{}", 10_f64.powf(place)),
            Scale::Logarithmic => format!("{:.*}", -place.floor() as usize, 10_f64.powf(place)),
            Scale::Steps(steps) => steps.get(place.round() as usize).cloned().unwrap_or_default(),
        }
    }
}
