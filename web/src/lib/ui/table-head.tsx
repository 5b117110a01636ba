interface Props {
  /** Columns of buttons have no name. */
  columns: readonly string[]
  /** The columns of numbers, which are aligned to the right. */
  numbers?: readonly string[]
}

/** One row of column names. */
export function TableHead({ columns, numbers = [] }: Props) {
  return (
    <thead>
      <tr>
        {columns.map((column) =>
          column === '' ? (
            <td key={column} />
          ) : (
            <th key={column} scope="col" className={numbers.includes(column) ? 'number' : undefined}>
              {column}
            </th>
          ),
        )}
      </tr>
    </thead>
  )
}
