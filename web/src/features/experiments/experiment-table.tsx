import type { Sort } from '@/api/experiment-list'
import type { ExperimentGroup } from '@/api/types'

import type { Column } from './columns'
import { ExperimentRow } from './experiment-row'
import { GroupRow } from './group-row'
import type { Ticks } from './selection'
import type { CellContext } from './table-cells'
import { experimentsOf, type TableRow } from './table-rows'
import { nextSort } from './url-state'

interface Props {
  rows: readonly TableRow[]
  columns: readonly Column[]
  context: CellContext
  ticks: Ticks
  onTickGroup: (group: ExperimentGroup, on: boolean) => void
  onOpenGroup: (key: string) => void
  reads: boolean
  sort: Sort | undefined
  onSort: (sort: Sort | undefined) => void
}

export function ExperimentTable(props: Props) {
  const { rows, columns, context, ticks, reads } = props
  return (
    <div className="table-scroll experiments-scroll" tabIndex={0} role="group" aria-label="Experiments">
      <table className="experiments">
        <Head {...props} />
        <tbody>
          {rows.map((row) =>
            row.kind === 'group' ? (
              <GroupRow
                key={row.group.key}
                group={row.group}
                columns={columns}
                context={context}
                open={row.open}
                onOpen={() => {
                  props.onOpenGroup(row.group.key)
                }}
                ticked={isTicked(row.group, ticks)}
                onTick={() => {
                  props.onTickGroup(row.group, !isTicked(row.group, ticks))
                }}
              />
            ) : (
              <ExperimentRow
                key={row.experiment.id}
                experiment={row.experiment}
                columns={columns}
                context={context}
                inside={row.inside}
                reads={reads}
                ticked={ticks.has(row.experiment.id)}
                onTick={(range) => {
                  ticks.tick(row.experiment, range)
                }}
              />
            ),
          )}
        </tbody>
      </table>
    </div>
  )
}

function isTicked(group: ExperimentGroup, ticks: Ticks): boolean {
  const inside = ticks.selected.filter(({ seed_group: key }) => key === group.key)
  return inside.length >= group.count
}

function Head({ rows, columns, ticks, sort, onSort }: Props) {
  const shown = experimentsOf(rows)
  const all = shown.length > 0 && shown.every(({ id }) => ticks.has(id))
  return (
    <thead>
      <tr>
        <th scope="col" className="cell-tick">
          <input
            type="checkbox"
            aria-label="Select all that are shown"
            checked={all}
            ref={(box) => {
              if (box) box.indeterminate = !all && shown.some(({ id }) => ticks.has(id))
            }}
            onChange={() => {
              ticks.tickAll(shown, !all)
            }}
          />
        </th>
        <HeadCell label="Experiment" className="cell-name" sorts={['name', '-name']} sort={sort} onSort={onSort} />
        {columns.map(({ id, label, hint, sorts, number }) => (
          <HeadCell
            key={id}
            label={label}
            hint={hint}
            sorts={sorts}
            className={number ? 'number' : undefined}
            sort={sort}
            onSort={onSort}
          />
        ))}
      </tr>
    </thead>
  )
}

interface HeadCellProps extends Pick<Props, 'sort' | 'onSort'> {
  label: string
  hint?: string | undefined
  sorts: readonly [Sort, Sort] | undefined
  className: string | undefined
}

/** A column's name, which sorts by it: the better end first, then the other, then the newest first again. */
function HeadCell({ label, hint, sorts, className, sort, onSort }: HeadCellProps) {
  if (sorts === undefined) {
    return (
      <th scope="col" className={className} title={hint}>
        {label}
      </th>
    )
  }
  const sorted = sort !== undefined && sorts.includes(sort)
  const down = sort?.startsWith('-')
  return (
    <th scope="col" className={className} aria-sort={sorted ? (down ? 'descending' : 'ascending') : undefined}>
      <button
        type="button"
        className="sort-button"
        title={hint}
        onClick={() => {
          onSort(nextSort(sort, sorts))
        }}
      >
        {label}
        <span className="sort-mark" aria-hidden>
          {sorted ? (down ? '↓' : '↑') : ''}
        </span>
      </button>
    </th>
  )
}
