import type { Place } from './layout'

const PAGE = 10

/** The cell that a key leads to: arrows move by one, with Ctrl or Page keys by ten, Home and End along the row. */
export function cellTarget(
  key: string,
  whole: boolean,
  { row, column }: Place,
  { rows, columns }: { rows: number; columns: number },
): Place | undefined {
  const step = whole ? PAGE : 1
  switch (key) {
    case 'ArrowLeft':
      return within({ row, column: column - step })
    case 'ArrowRight':
      return within({ row, column: column + step })
    case 'ArrowUp':
      return within({ row: row - step, column })
    case 'ArrowDown':
      return within({ row: row + step, column })
    case 'PageUp':
      return within({ row: row - PAGE, column })
    case 'PageDown':
      return within({ row: row + PAGE, column })
    case 'Home':
      return within({ row: whole ? 0 : row, column: 0 })
    case 'End':
      return within({ row: whole ? rows - 1 : row, column: columns - 1 })
    default:
      return undefined
  }

  function within(to: Place): Place {
    return {
      row: Math.min(rows - 1, Math.max(0, to.row)),
      column: Math.min(columns - 1, Math.max(0, to.column)),
    }
  }
}
