//! Rounds, medians and clocks.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What one operation cost in one round, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// By the wall clock.
    pub wall: f64,
    /// Of this process's processor time, all threads together.
    pub cpu: f64,
}

/// One side of a comparison.
pub struct Rival<'a> {
    /// How it is called in the table.
    pub name: String,
    /// Does its work so many times, and says what one of them cost.
    pub run: Box<dyn FnMut(u64) -> Cost + 'a>,
}

impl std::fmt::Debug for Rival<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Rival").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Rival<'a> {
    /// A rival that does nothing but what is measured.
    pub fn new(name: impl Into<String>, mut run: impl FnMut(u64) + 'a) -> Self {
        Self::timing(name, move |times| timed(times, || run(times)).1)
    }

    /// A rival that has to prepare its work, and times the rest itself with [`timed`].
    pub fn timing(name: impl Into<String>, run: impl FnMut(u64) -> Cost + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// The costs of every round of one rival, in the order of the rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// How the rival is called.
    pub name: String,
    /// One cost a round.
    pub rounds: Vec<Cost>,
}

impl Series {
    /// The median wall time of an operation, in nanoseconds.
    #[must_use]
    pub fn wall(&self) -> f64 {
        median(self.rounds.iter().map(|it| it.wall))
    }

    /// The median processor time of an operation, in nanoseconds.
    #[must_use]
    pub fn cpu(&self) -> f64 {
        median(self.rounds.iter().map(|it| it.cpu))
    }

    /// The median over the rounds of this rival's processor time by the other's in the same round.
    #[must_use]
    pub fn cpu_by(&self, other: &Self) -> f64 {
        median(self.rounds.iter().zip(&other.rounds).map(|(a, b)| a.cpu / b.cpu))
    }

    /// The same of wall times.
    #[must_use]
    pub fn wall_by(&self, other: &Self) -> f64 {
        median(self.rounds.iter().zip(&other.rounds).map(|(a, b)| a.wall / b.wall))
    }
}

/// Runs every rival once a round, after one round that does not count. How often a rival works in a round is found
/// first, so that each takes about `slice`.
pub fn interleave(rivals: &mut [Rival<'_>], rounds: usize, slice: Duration) -> Vec<Series> {
    let times: Vec<u64> = rivals.iter_mut().map(|it| calibrate(it, slice)).collect();
    let mut series: Vec<Series> =
        rivals.iter().map(|it| Series { name: it.name.clone(), rounds: Vec::new() }).collect();
    for _ in 0..rounds {
        for ((rival, times), into) in rivals.iter_mut().zip(&times).zip(&mut series) {
            into.rounds.push((rival.run)(*times));
        }
    }
    series
}

fn calibrate(rival: &mut Rival<'_>, slice: Duration) -> u64 {
    let (mut times, wanted) = (1, slice.as_secs_f64() * 1e9);
    loop {
        let taken = (rival.run)(times).wall * count(times);
        if taken * 4.0 >= wanted {
            let scaled = count(times) * wanted / taken;
            return scaled.max(1.0) as u64;
        }
        times = times.saturating_mul(4);
    }
}

/// Runs `work`, which is `times` operations, and says what one of them cost.
pub fn timed<T>(times: u64, work: impl FnOnce() -> T) -> (T, Cost) {
    let (wall, cpu) = (Instant::now(), cpu_time());
    let done = work();
    let (wall, cpu) = (wall.elapsed(), cpu_time().saturating_sub(cpu));
    (done, Cost { wall: nanos(wall) / count(times), cpu: nanos(cpu) / count(times) })
}

/// A time as nanoseconds.
#[must_use]
pub fn nanos(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

/// The processor time that this process has used, all threads together.
#[must_use]
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The middle of the values; 0 where there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// The value that the part `q` of all values lies at or below; 0 where there are none.
pub fn quantile(values: impl IntoIterator<Item = f64>, q: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let place = (count(last as u64) * q).round() as usize;
    values.get(place.min(last)).copied().unwrap_or(0.0)
}

/// A count as a float; exact below 2^53.
#[must_use]
pub const fn count(times: u64) -> f64 {
    times as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Medians and quantiles are values of the list, whatever its order.
    #[test]
    fn quantiles_are_values_of_the_list() {
        let values = || [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!((median(values()), quantile(values(), 1.0), quantile(values(), 0.0)), (3.0, 5.0, 1.0));
        assert_eq!(median([]), 0.0);
    }

    /// Every rival runs in every round, and ratios are taken within a round.
    #[test]
    fn rounds_run_every_rival_once() {
        let one =
            Series { name: "one".into(), rounds: vec![Cost { wall: 1.0, cpu: 1.0 }, Cost { wall: 9.0, cpu: 9.0 }] };
        let two =
            Series { name: "two".into(), rounds: vec![Cost { wall: 2.0, cpu: 2.0 }, Cost { wall: 3.0, cpu: 3.0 }] };
        assert_eq!(one.cpu_by(&two), 3.0);
        let mut rivals = [Rival::new("a", |times| assert!(times > 0)), Rival::new("b", |_| {})];
        let series = interleave(&mut rivals, 3, Duration::from_nanos(1));
        assert_eq!(series.iter().map(|it| it.rounds.len()).collect::<Vec<_>>(), [3, 3]);
    }
}
