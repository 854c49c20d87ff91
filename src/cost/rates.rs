//! What a core and a card cost by the hour: the user's numbers, none of ours.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Prices and powers as the user set them; what is absent is not reckoned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Price of one core for one hour.
    #[serde(default)]
    pub cpu_hour: Option<f64>,
    /// Price of one card for one hour.
    #[serde(default)]
    pub gpu_hour: Option<f64>,
    /// Written behind the sums: `EUR`, `credits`.
    #[serde(default)]
    pub currency: Option<String>,
    /// Power of one busy core, in watts.
    #[serde(default)]
    pub cpu_watts: Option<f64>,
    /// Power of one busy card, in watts, for tasks whose power was not sampled.
    #[serde(default)]
    pub gpu_watts: Option<f64>,
    /// Grams of CO2 equivalent that one kilowatt-hour causes.
    #[serde(default)]
    pub co2e_per_kwh: Option<f64>,
}

/// What a run comes to at the given rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Money: reserved core-hours and card-hours at their prices.
    pub money: Option<f64>,
    pub currency: Option<String>,
    /// Energy of busy cores and of cards, sampled where it was.
    pub kilowatt_hours: Option<f64>,
    /// The sampled part of it.
    pub sampled_kilowatt_hours: Option<f64>,
    pub grams_co2e: Option<f64>,
}

/// The hours that are paid for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Hours {
    /// Cores held, by the hour: what clusters bill.
    pub core: Option<f64>,
    /// Cores busy, by the hour: what draws power.
    pub busy_core: Option<f64>,
    pub gpu: Option<f64>,
    /// Hours of cards whose power nobody sampled.
    pub unsampled_gpu: Option<f64>,
    pub sampled_joules: Option<f64>,
}

const JOULES_PER_KILOWATT_HOUR: f64 = 3_600_000.0;

impl Rates {
    /// Errors: a rate that is negative or not a number.
    pub fn check(&self) -> Result<()> {
        let rates = [
            ("cpu_hour", self.cpu_hour),
            ("gpu_hour", self.gpu_hour),
            ("cpu_watts", self.cpu_watts),
            ("gpu_watts", self.gpu_watts),
            ("co2e_per_kwh", self.co2e_per_kwh),
        ];
        for (name, rate) in rates {
            if let Some(rate) = rate.filter(|rate| !rate.is_finite() || *rate < 0.0) {
                return Err(Error::input(format_args!("the rate {name} is {rate}"))
                    .hint("give a number that is 0 or more, or leave it out"));
            }
        }
        Ok(())
    }

    /// What the hours come to; `None` where no rate meets a known number of hours.
    pub(super) fn price(&self, hours: Hours) -> Option<Price> {
        let money = sum([product(self.cpu_hour, hours.core), product(self.gpu_hour, hours.gpu)]);
        let of_energy = [self.cpu_watts, self.gpu_watts, self.co2e_per_kwh].iter().any(Option::is_some);
        let sampled =
            hours.sampled_joules.filter(|_| of_energy).map(|joules| joules / JOULES_PER_KILOWATT_HOUR);
        let reckoned =
            sum([product(self.cpu_watts, hours.busy_core), product(self.gpu_watts, hours.unsampled_gpu)]);
        let energy = sum([reckoned.map(|watt_hours| watt_hours / 1000.0), sampled]);
        if money.is_none() && energy.is_none() {
            return None;
        }
        Some(Price {
            money,
            currency: self.currency.clone(),
            kilowatt_hours: energy,
            sampled_kilowatt_hours: sampled,
            grams_co2e: product(self.co2e_per_kwh, energy),
        })
    }
}

fn product(rate: Option<f64>, hours: Option<f64>) -> Option<f64> {
    Some(rate? * hours?)
}

/// The sum of what is known; `None` where nothing is.
fn sum(parts: [Option<f64>; 2]) -> Option<f64> {
    parts.into_iter().flatten().reduce(|left, right| left + right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_needs_a_rate_and_hours() {
        let rates = Rates { cpu_hour: Some(0.05), gpu_hour: Some(2.0), ..Rates::default() };
        let hours = Hours { core: Some(10.0), busy_core: Some(5.0), gpu: Some(0.5), ..Hours::default() };
        let price = rates.price(hours).unwrap();
        assert!((price.money.unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(price.kilowatt_hours, None);
        let no_gpu = rates.price(Hours { gpu: None, ..hours }).unwrap();
        assert!((no_gpu.money.unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(Rates::default().price(hours), None);
        assert_eq!(rates.price(Hours::default()), None);
    }

    #[test]
    fn energy_counts_busy_cores() {
        let rates = Rates { cpu_watts: Some(10.0), gpu_watts: Some(300.0), ..Rates::default() };
        let hours = Hours {
            core: Some(8.0),
            busy_core: Some(2.0),
            gpu: Some(3.0),
            unsampled_gpu: Some(1.0),
            sampled_joules: None,
        };
        let price = rates.price(hours).unwrap();
        assert!((price.kilowatt_hours.unwrap() - 0.32).abs() < 1e-12);
        assert_eq!((price.money, price.sampled_kilowatt_hours, price.grams_co2e), (None, None, None));
        let sampled = Hours { sampled_joules: Some(720_000.0), ..hours };
        let price = Rates { co2e_per_kwh: Some(100.0), ..rates }.price(sampled).unwrap();
        assert!((price.kilowatt_hours.unwrap() - 0.52).abs() < 1e-12);
        assert!((price.grams_co2e.unwrap() - 52.0).abs() < 1e-9);
        // Without a rate that is about energy nothing is said of it.
        let money = Rates { gpu_hour: Some(1.0), ..Rates::default() }.price(sampled).unwrap();
        assert_eq!((money.money, money.kilowatt_hours), (Some(3.0), None));
    }

    #[test]
    fn a_negative_rate_is_named() {
        let rates = Rates { gpu_hour: Some(-1.0), ..Rates::default() };
        assert_eq!(rates.check().unwrap_err().message, "the rate gpu_hour is -1");
        assert!(Rates { cpu_hour: Some(0.0), ..Rates::default() }.check().is_ok());
        assert!(Rates { cpu_watts: Some(f64::NAN), ..Rates::default() }.check().is_err());
    }
}
