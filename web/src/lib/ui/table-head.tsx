interface Props {
  columns: readonly string[]
  /** Those of the columns that hold numbers, and stand right as these do. */
  numbers?: readonly string[]
}

/** One row of column names. */
export function TableHead({ columns, numbers = [] }: Props) {
  return (
    <thead>
      <tr>
        {columns.map((column) => (
          <th key={column} scope="col" className={numbers.includes(column) ? 'number' : undefined}>
            {column}
          </th>
        ))}
      </tr>
    </thead>
  )
}
