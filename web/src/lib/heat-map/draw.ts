import { labelStep, type Layout, type Place, visible, type Window } from './layout'
import type { Rgb } from './scale'

/** The cells row by row, each an index into `colours`; 255 is an empty cell. */
export interface Cells {
  rows: number
  columns: number
  places: Uint8Array
  colours: readonly Rgb[]
  /** Signs that distinguish colours, by index into `colours`; drawn if there is room. */
  signs: readonly (Sign | undefined)[]
}

export type Sign = 'cross' | 'line' | 'dot'

export const NOTHING = 255

export interface Ink {
  ground: string
  text: string
  muted: string
  line: string
  /** Of signs, on the cells. */
  sign: string
  font: string
}

interface Scene {
  layout: Layout
  seen: Window
  /** Device pixels in a CSS pixel. */
  ratio: number
  /** One pixel for each cell, by {@link paint}. */
  image: CanvasImageSource
  cells: Cells
  rowNames: readonly string[]
  columnNames: readonly string[]
  cursor: Place | undefined
  ink: Ink
}

const GAPS_FROM = 5
const SIGNS_FROM = 9
const NAMES_FROM = 11
const HALF_NAME = 6

/** One pixel for each cell: `pixels` belongs to an ImageData with this number of columns and rows. */
export function paint({ places, colours }: Cells, pixels: Uint8ClampedArray): void {
  const words = new Uint32Array(pixels.buffer, pixels.byteOffset, pixels.length / 4)
  // Little-endian, as every machine that runs a browser today is.
  const packed = new Uint32Array(256)
  colours.forEach(([red, green, blue], place) => {
    packed[place] = (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0
  })
  for (let index = 0; index < words.length; index += 1) words[index] = packed[places[index] ?? NOTHING] ?? 0
}

/** Draws what is seen of a heat-map, and nothing else: its cost does not grow with what is scrolled out. */
export function draw(context: CanvasRenderingContext2D, scene: Scene): void {
  const { layout, seen, ratio, ink } = scene
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.fillStyle = ink.ground
  context.fillRect(0, 0, seen.width, seen.height)
  clipped(context, [layout.left, layout.top, seen.width - layout.left, seen.height - layout.top], () => {
    drawCells(context, scene)
    drawGaps(context, scene)
    drawSigns(context, scene)
    drawCursor(context, scene)
  })
  clipped(context, [0, layout.top, layout.left, seen.height - layout.top], () => {
    drawRowNames(context, scene)
  })
  clipped(context, [layout.left, 0, seen.width - layout.left, layout.top], () => {
    drawColumnNames(context, scene)
  })
}

function clipped(context: CanvasRenderingContext2D, box: [number, number, number, number], inside: () => void): void {
  context.save()
  context.beginPath()
  context.rect(...box)
  context.clip()
  inside()
  context.restore()
}

function drawCells(context: CanvasRenderingContext2D, { layout, seen, image }: Scene): void {
  const { firstRow, lastRow, firstColumn, lastColumn } = visible(layout, seen)
  const [columns, rows] = [lastColumn - firstColumn, lastRow - firstRow]
  if (columns <= 0 || rows <= 0) return
  const [x, y] = corner(layout, seen, { row: firstRow, column: firstColumn })
  context.imageSmoothingEnabled = false
  context.drawImage(
    image,
    ...[firstColumn, firstRow, columns, rows],
    ...[x, y, columns * layout.width, rows * layout.height],
  )
}

function corner(layout: Layout, seen: Window, { row, column }: Place): [number, number] {
  return [layout.left + column * layout.width - seen.x, layout.top + row * layout.height - seen.y]
}

/** Draws gaps between cells that are large enough. */
function drawGaps(context: CanvasRenderingContext2D, { layout, seen, ink }: Scene): void {
  const { firstRow, lastRow, firstColumn, lastColumn } = visible(layout, seen)
  const [left, top] = corner(layout, seen, { row: firstRow, column: firstColumn })
  const [right, bottom] = corner(layout, seen, { row: lastRow, column: lastColumn })
  context.fillStyle = ink.ground
  if (layout.width >= GAPS_FROM) {
    for (let x = left + layout.width; x <= right; x += layout.width) context.fillRect(x - 1, top, 1, bottom - top)
  }
  if (layout.height >= GAPS_FROM) {
    for (let y = top + layout.height; y <= bottom; y += layout.height) context.fillRect(left, y - 1, right - left, 1)
  }
}

function drawSigns(context: CanvasRenderingContext2D, { layout, seen, cells, ink }: Scene): void {
  const size = Math.min(layout.width, layout.height) - 1
  if (size < SIGNS_FROM - 1 || cells.signs.every((sign) => sign === undefined)) return
  const { firstRow, lastRow, firstColumn, lastColumn } = visible(layout, seen)
  const reach = Math.min(size * 0.24, 4)
  context.strokeStyle = ink.sign
  context.lineWidth = Math.min(2, size * 0.14)
  context.beginPath()
  for (let row = firstRow; row < lastRow; row += 1) {
    for (let column = firstColumn; column < lastColumn; column += 1) {
      const sign = cells.signs[cells.places[row * cells.columns + column] ?? NOTHING]
      if (sign === undefined) continue
      const [x, y] = corner(layout, seen, { row, column })
      trace(context, sign, x + (layout.width - 1) / 2, y + (layout.height - 1) / 2, reach)
    }
  }
  context.stroke()
}

function trace(context: CanvasRenderingContext2D, sign: Sign, x: number, y: number, reach: number): void {
  if (sign === 'dot') {
    context.moveTo(x + reach / 2, y)
    context.arc(x, y, reach / 2, 0, 2 * Math.PI)
    return
  }
  const rise = sign === 'cross' ? reach : 0
  context.moveTo(x - reach, y - rise)
  context.lineTo(x + reach, y + rise)
  if (sign === 'line') return
  context.moveTo(x - reach, y + rise)
  context.lineTo(x + reach, y - rise)
}

function drawCursor(context: CanvasRenderingContext2D, { layout, seen, cursor, ink }: Scene): void {
  if (cursor === undefined) return
  const [x, y] = corner(layout, seen, cursor)
  context.fillStyle = ink.text
  context.globalAlpha = 0.12
  context.fillRect(layout.left, y, seen.width, layout.height)
  context.fillRect(x, layout.top, layout.width, seen.height)
  context.globalAlpha = 1
  context.strokeStyle = ink.ground
  context.lineWidth = 4
  context.strokeRect(x - 1, y - 1, layout.width + 1, layout.height + 1)
  context.strokeStyle = ink.text
  context.lineWidth = 2
  context.strokeRect(x - 1, y - 1, layout.width + 1, layout.height + 1)
}

/** Of every row where there is room, otherwise of as many as there is room for. */
function drawRowNames(context: CanvasRenderingContext2D, { layout, seen, rowNames, cursor, ink }: Scene): void {
  const { firstRow, lastRow } = visible(layout, seen)
  const step = Math.ceil((NAMES_FROM + 2) / layout.height)
  context.font = ink.font
  context.textAlign = 'right'
  context.textBaseline = 'middle'
  context.direction = 'ltr'
  const middle = (row: number) => {
    const y = layout.top + row * layout.height - seen.y + (layout.height - 1) / 2
    return Math.max(layout.top + HALF_NAME, y) // the first name stays visible next to low cells
  }
  const write = (row: number, style: string) => {
    context.fillStyle = style
    const y = middle(row)
    context.fillText(shortened(context, rowNames[row] ?? '', layout.left - 14), layout.left - 6, y + 1)
  }
  for (let row = Math.ceil(firstRow / step) * step; row < lastRow; row += step) write(row, ink.muted)
  if (cursor !== undefined && cursor.row >= firstRow && cursor.row < lastRow) {
    context.fillStyle = ink.ground
    context.fillRect(0, middle(cursor.row) - 8, layout.left, 16)
    write(cursor.row, ink.text)
  }
}

function drawColumnNames(context: CanvasRenderingContext2D, { layout, seen, columnNames, cursor, ink }: Scene): void {
  const { firstColumn, lastColumn } = visible(layout, seen)
  const step = labelStep(layout.width, (columnNames.at(-1) ?? '').length)
  context.font = ink.font
  context.textAlign = 'center'
  context.textBaseline = 'alphabetic'
  const at = (column: number) => layout.left + column * layout.width - seen.x + (layout.width - 1) / 2
  const placed = (column: number) => {
    const name = columnNames[column] ?? ''
    const half = context.measureText(name).width / 2 + 3
    const x = Math.min(seen.width - half, Math.max(layout.left + half, at(column)))
    return { name, half, x }
  }
  for (let column = firstColumn; column < lastColumn; column += 1) {
    if (column !== 0 && Number(columnNames[column]) % step !== 0) continue
    const { name, x } = placed(column)
    context.fillStyle = ink.muted
    context.fillText(name, x, layout.top - 7)
    context.fillStyle = ink.line
    context.fillRect(at(column), layout.top - 4, 1, 3)
  }
  if (cursor === undefined) return
  const { name, half, x } = placed(cursor.column)
  context.fillStyle = ink.ground
  context.fillRect(x - half - 2, 0, 2 * half + 4, layout.top)
  context.fillStyle = ink.text
  context.fillText(name, x, layout.top - 7)
}

const fitting = new Map<string, string>()
const REMEMBERED = 5000

/** As much of the text as fits, found once: long names take many measurements. */
function shortened(context: CanvasRenderingContext2D, text: string, width: number): string {
  const key = `${context.font} ${width} ${text}`
  let found = fitting.get(key)
  if (found === undefined) {
    if (fitting.size >= REMEMBERED) fitting.clear()
    found = cut(context, text, width)
    fitting.set(key, found)
  }
  return found
}

function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text
  const letters = Array.from(text)
  let [low, high] = [0, letters.length]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (context.measureText(`${letters.slice(0, middle).join('')}…`).width <= width) low = middle
    else high = middle - 1
  }
  return `${letters.slice(0, low).join('')}…`
}
