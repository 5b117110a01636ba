import type { Sort } from '@/api/experiment-list'

import { COLUMNS, SORTS } from './columns'

interface Props {
  sort: Sort | undefined
  onSort: (sort: Sort | undefined) => void
}

/** The order, for screens that have no row of column names. */
export function SortField({ sort, onSort }: Props) {
  return (
    <label className="sort-field">
      <span className="muted small">Sort</span>
      <select
        value={sort ?? ''}
        onChange={({ target: { value } }) => {
          onSort(SORTS.find((known) => known === value))
        }}
      >
        <option value="">Newest first</option>
        <SortOptions label="Name" sorts={['name', '-name']} />
        {COLUMNS.map(({ id, label, sorts }) => sorts && <SortOptions key={id} label={label} sorts={sorts} />)}
      </select>
    </label>
  )
}

function SortOptions({ label, sorts }: { label: string; sorts: readonly [Sort, Sort] }) {
  return sorts.map((sort) => (
    <option key={sort} value={sort}>
      {label} {sort.startsWith('-') ? '↓' : '↑'}
    </option>
  ))
}
