/** Where the cells of a heat-map are. All in CSS pixels; cells have whole ones, so that none is wider than another. */
export interface Layout {
  rows: number
  columns: number
  /** Of one cell. */
  width: number
  height: number
  /** Of the names on the left and of the numbers on top, which stay where they are. */
  left: number
  top: number
}

export interface Place {
  row: number
  column: number
}

/** How far the cells are moved under the axes, and the size of what is seen of all. */
export interface Window {
  x: number
  y: number
  width: number
  height: number
}

/** Visible rows and columns: the first, and one past the last. */
interface Visible {
  firstRow: number
  lastRow: number
  firstColumn: number
  lastColumn: number
}

const SMALLEST = 2
const LARGEST = 40

/** By how much the cells grow from one step of the zoom to the next. */
const ZOOM_STEP = 1.5
export const MOST_ZOOM = 6

/**
 * The size of a cell along one side: as fits `room`, from `least` to `most`, and larger with each step of `zoom`.
 * Where not all fit, the rest is scrolled to.
 */
export function cellSize(room: number, count: number, [least, most]: [number, number], zoom: number): number {
  const fitting = Math.min(most, Math.max(least, Math.floor(room / Math.max(1, count))))
  return Math.min(LARGEST, Math.max(SMALLEST, Math.round(fitting * ZOOM_STEP ** zoom)))
}

/** The size of the whole map; a window of it is visible. */
export function extent({ rows, columns, width, height, left, top }: Layout): { width: number; height: number } {
  return { width: left + columns * width, height: top + rows * height }
}

export function visible(layout: Layout, seen: Window): Visible {
  const span = (from: number, room: number, size: number, count: number): [number, number] => [
    Math.min(count, Math.max(0, Math.floor(from / size))),
    Math.min(count, Math.max(0, Math.ceil((from + room) / size))),
  ]
  const [firstRow, lastRow] = span(seen.y, seen.height - layout.top, layout.height, layout.rows)
  const [firstColumn, lastColumn] = span(seen.x, seen.width - layout.left, layout.width, layout.columns)
  return { firstRow, lastRow, firstColumn, lastColumn }
}

/** The cell at a point of the window; undefined on the axes and outside. */
export function placeAt(layout: Layout, seen: Window, x: number, y: number): Place | undefined {
  if (x < layout.left || y < layout.top || x >= seen.width || y >= seen.height) return undefined
  const row = Math.floor((y - layout.top + seen.y) / layout.height)
  const column = Math.floor((x - layout.left + seen.x) / layout.width)
  return row < layout.rows && column < layout.columns ? { row, column } : undefined
}

/** The row name at a point of the window. */
export function rowAt(layout: Layout, seen: Window, x: number, y: number): number | undefined {
  if (x < 0 || x >= layout.left || y < layout.top || y >= seen.height) return undefined
  const row = Math.floor((y - layout.top + seen.y) / layout.height)
  return row < layout.rows ? row : undefined
}

/** Where to scroll so that a cell is seen: no further than needed. */
export function revealed(layout: Layout, seen: Window, { row, column }: Place): { x: number; y: number } {
  const along = (from: number, room: number, start: number, size: number) =>
    start < from ? start : start + size > from + room ? start + size - room : from
  return {
    x: along(seen.x, seen.width - layout.left, column * layout.width, layout.width),
    y: along(seen.y, seen.height - layout.top, row * layout.height, layout.height),
  }
}

/** The distance in columns between two labels, so that labels of `digits` digits do not touch. */
export function labelStep(width: number, digits: number): number {
  const room = 8 * digits + 10
  return [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => step * width >= room) ?? 2000
}

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
