//! The values of an enum as a processor looks for one among them: a comparison and a mask of bits for those that
//! lie near to each other.

/// Values of an enum that lie near to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// The first one.
    pub least: i32,
    /// Distance from it to the last one. Over 63 only where none is missing.
    pub span: u32,
    /// A bit for each value between them, not set if it is a member.
    pub missing: u64,
}

impl Cluster {
    /// The clusters of these values, in the order of the values.
    pub fn of(values: impl IntoIterator<Item = i32>) -> Vec<Self> {
        let mut values: Vec<i32> = values.into_iter().collect();
        values.sort_unstable();
        values.dedup();
        Self::all(&values)
    }

    /// Of values in their order.
    fn all(values: &[i32]) -> Vec<Self> {
        let mut clusters: Vec<Self> = Vec::new();
        for value in values {
            let last = clusters.last_mut();
            if !last.is_some_and(|last| last.takes(*value)) {
                clusters.push(Self {
                    least: *value,
                    span: 0,
                    missing: 0,
                });
            }
        }
        clusters
    }

    /// Takes the next value in, if it is near enough.
    fn takes(&mut self, value: i32) -> bool {
        let distance = value.abs_diff(self.least);
        if distance == self.span + 1 && self.missing == 0 {
            self.span = distance;
        } else if distance < u64::BITS {
            let between = ((1 << distance) - 1) & !((1 << (self.span + 1)) - 1);
            self.missing |= between;
            self.span = distance;
        } else {
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(clusters: &[Cluster], value: i32) -> bool {
        clusters.iter().any(|cluster| {
            let distance = (value as u32).wrapping_sub(cluster.least as u32);
            distance <= cluster.span && (cluster.missing >> (distance % 64)) & 1 == 0
        })
    }

    #[test]
    fn clusters_hold_the_values_and_no_others() {
        let sets: [&[i32]; 8] = [
            &[],
            &[0],
            &[-2, 1, 4],
            &[0, 1, 2, 3],
            &[0, 1, 2, 5, 6, 13, 63, 64, 66, 70, 10001, 10008],
            &[i32::MIN, i32::MAX],
            &[-1, 0, 63, 64, 127],
            &(0..200).collect::<Vec<_>>(),
        ];
        for values in sets {
            let clusters = Cluster::all(values);
            let nearby = values
                .iter()
                .flat_map(|value| (-70..=70).map(move |distance| value.wrapping_add(distance)));
            for value in nearby.chain([0, -1, i32::MIN, i32::MAX]) {
                assert_eq!(is_in(&clusters, value), values.contains(&value), "{value}");
            }
        }
        assert_eq!(Cluster::all(sets[7]).len(), 1);
    }
}
