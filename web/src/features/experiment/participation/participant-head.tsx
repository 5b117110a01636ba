import { type Column, COLUMNS, type Order } from './participant-summary'

const TITLES: Record<Column, string> = {
  name: 'Participant',
  last: 'Last round',
  accepted: 'Accepted',
  rejected: 'Rejected',
  missed: 'Missed',
  bytes: 'Sent',
  duration: 'Trained, mean',
  loss: 'Train loss',
  seen: 'Last seen',
}

const NUMBERS: readonly Column[] = ['last', 'accepted', 'rejected', 'missed', 'bytes', 'duration', 'loss']

interface Props {
  order: Order
  onOrder: (order: Order) => void
}

/** Column names that sort: numbers from the largest, names from the first; once more the other way. */
export function ParticipantHead({ order, onOrder }: Props) {
  const [name, ...others] = COLUMNS
  const cell = (column: Column) => <Head key={column} column={column} order={order} onOrder={onOrder} />
  return (
    <thead>
      <tr>
        {cell(name)}
        <th scope="col">State</th>
        {others.map(cell)}
      </tr>
    </thead>
  )
}

function Head({ column, order, onOrder }: Props & { column: Column }) {
  const usual: Order = column === 'name' ? column : `-${column}`
  const other: Order = column === 'name' ? `-${column}` : column
  const chosen = order === usual || order === other
  const descending = order.startsWith('-')
  return (
    <th
      scope="col"
      className={NUMBERS.includes(column) ? 'number' : undefined}
      aria-sort={chosen ? (descending ? 'descending' : 'ascending') : undefined}
    >
      <button
        type="button"
        className="sort-button"
        onClick={() => {
          onOrder(order === usual ? other : usual)
        }}
      >
        {TITLES[column]}
        <span aria-hidden>{chosen ? (descending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  )
}
