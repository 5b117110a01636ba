import type { ExperimentGroup, ListedExperiment } from '@/api/types'

/** A row of the table: an experiment, by itself or inside of an open group, or a group of several. */
export type Line =
  | { kind: 'experiment'; experiment: ListedExperiment; inside: boolean }
  | { kind: 'group'; group: ExperimentGroup; open: boolean }

/** Groups as rows; one of a single experiment is that, and an open one is followed by what is in it. */
export function groupLines(
  groups: readonly ExperimentGroup[],
  open: readonly string[],
  members: Readonly<Record<string, readonly ListedExperiment[]>>,
): Line[] {
  return groups.flatMap((group): Line[] => {
    if (group.count === 1) return experimentLines([group.newest])
    const isOpen = open.includes(group.key)
    const line: Line = { kind: 'group', group, open: isOpen }
    return isOpen ? [line, ...experimentLines(members[group.key] ?? [], true)] : [line]
  })
}

export function experimentLines(experiments: readonly ListedExperiment[], inside = false): Line[] {
  return experiments.map((experiment) => ({ kind: 'experiment', experiment, inside }))
}

/** The experiments that have a row, in the table's order. */
export function experimentsOf(lines: readonly Line[]): ListedExperiment[] {
  return lines.flatMap((line) => (line.kind === 'experiment' ? [line.experiment] : []))
}
