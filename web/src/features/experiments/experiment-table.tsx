import type { Sort } from '@/api/experiment-list'
import type { ExperimentGroup } from '@/api/types'

import type { Column } from './columns'
import { ExperimentRow } from './experiment-row'
import { GroupRow } from './group-row'
import type { CellContext } from './table-cells'
import { experimentsOf, type Line } from './table-rows'
import { nextSort } from './url-state'
import type { Ticks } from './use-selection'

interface Props {
  lines: readonly Line[]
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
  const { lines, columns, context, ticks, reads } = props
  return (
    <div className="table-scroll experiments-scroll" tabIndex={0} role="region" aria-label="Experiments">
      <table className="experiments">
        <Head {...props} />
        <tbody>
          {lines.map((line) =>
            line.kind === 'group' ? (
              <GroupRow
                key={line.group.key}
                group={line.group}
                columns={columns}
                context={context}
                open={line.open}
                onOpen={() => {
                  props.onOpenGroup(line.group.key)
                }}
                ticked={isTicked(line.group, ticks)}
                onTick={() => {
                  props.onTickGroup(line.group, !isTicked(line.group, ticks))
                }}
              />
            ) : (
              <ExperimentRow
                key={line.experiment.id}
                experiment={line.experiment}
                columns={columns}
                context={context}
                inside={line.inside}
                reads={reads}
                ticked={ticks.has(line.experiment.id)}
                onTick={(range) => {
                  ticks.tick(line.experiment, range)
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

function Head({ lines, columns, ticks, sort, onSort }: Props) {
  const shown = experimentsOf(lines)
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
