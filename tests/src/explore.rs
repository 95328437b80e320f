//! Every way that a run can go: whoever has a choice asks the explorer, and the run is made again until all were taken.

/// Goes through all choices, depth first.
#[derive(Clone, Debug, Default)]
pub struct Explorer {
    /// What is taken at each choice of this run, and out of how many.
    path: Vec<(usize, usize)>,
    depth: usize,
    runs: usize,
}

impl Explorer {
    /// Makes `run` again and again, each time with other choices, until there are no others. Gives how many runs there were.
    pub fn all(mut run: impl FnMut(&mut Self)) -> usize {
        let mut explorer = Self::default();
        loop {
            explorer.depth = 0;
            explorer.runs += 1;
            run(&mut explorer);
            while explorer.path.last().is_some_and(|(taken, of)| taken + 1 == *of) {
                explorer.path.pop();
            }
            let Some(last) = explorer.path.last_mut() else { return explorer.runs };
            last.0 += 1;
        }
    }

    /// One of `0..of`, which has to be above zero.
    pub fn choose(&mut self, of: usize) -> usize {
        if self.depth == self.path.len() {
            self.path.push((0, of.max(1)));
        }
        let taken = self.path.get(self.depth).map_or(0, |it| it.0);
        self.depth += 1;
        taken
    }

    /// What was taken so far, to be seen again.
    #[must_use]
    pub fn taken(&self) -> Vec<usize> {
        self.path.iter().map(|it| it.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All leaves of a tree are reached, each once, also where the number of choices depends on those before.
    #[test]
    fn every_leaf_is_reached_once() {
        let mut leaves = Vec::new();
        let runs = Explorer::all(|explorer| {
            let first = explorer.choose(3);
            let second = if first == 1 { explorer.choose(2) } else { 0 };
            leaves.push((first, second, explorer.choose(2)));
        });
        let mut distinct = leaves.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!((runs, leaves.len(), distinct.len()), (8, 8, 8));
    }
}
