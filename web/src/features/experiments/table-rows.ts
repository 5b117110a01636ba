import type { ExperimentGroup, ListedExperiment } from '@/api/types'

/** A row of the table: an experiment, by itself or inside of an open group, or a group of several. */
export type TableRow =
  | { kind: 'experiment'; experiment: ListedExperiment; inside: boolean }
  | { kind: 'group'; group: ExperimentGroup; open: boolean }

/** Groups as rows; one of a single experiment is that, and an open one is followed by what is in it. */
export function groupRows(
  groups: readonly ExperimentGroup[],
  open: readonly string[],
  members: Readonly<Record<string, readonly ListedExperiment[]>>,
): TableRow[] {
  return groups.flatMap((group): TableRow[] => {
    if (group.count === 1) return experimentRows([group.newest])
    const isOpen = open.includes(group.key)
    const row: TableRow = { kind: 'group', group, open: isOpen }
    return isOpen ? [row, ...experimentRows(members[group.key] ?? [], true)] : [row]
  })
}

export function experimentRows(experiments: readonly ListedExperiment[], inside = false): TableRow[] {
  return experiments.map((experiment) => ({ kind: 'experiment', experiment, inside }))
}

/** The experiments that have a row, in the table's order. */
export function experimentsOf(rows: readonly TableRow[]): ListedExperiment[] {
  return rows.flatMap((row) => (row.kind === 'experiment' ? [row.experiment] : []))
}
