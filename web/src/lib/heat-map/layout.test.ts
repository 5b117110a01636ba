import { expect, test } from 'vitest'

import { cellSize, cellTarget, extent, labelStep, type Layout, placeAt, revealed, rowAt, visible } from './layout'

const LAYOUT: Layout = { rows: 1000, columns: 200, width: 5, height: 4, left: 150, top: 24 }
const SEEN = { x: 100, y: 40, width: 650, height: 424 }

test('cells are as large as fits, in whole pixels and within bounds, and larger by the zoom', () => {
  expect(cellSize(1000, 200, [4, 28], 0)).toBe(5)
  expect(cellSize(1000, 3, [4, 28], 0)).toBe(28)
  expect(cellSize(400, 1000, [4, 22], 0)).toBe(4)
  expect(cellSize(400, 1000, [4, 22], 2)).toBe(9)
  expect(cellSize(400, 1000, [4, 22], 6)).toBe(40)
  expect(cellSize(400, 0, [4, 22], 0)).toBe(22)
})

test('only what is in the window is visible', () => {
  expect(extent(LAYOUT)).toEqual({ width: 1150, height: 4024 })
  expect(visible(LAYOUT, SEEN)).toEqual({ firstRow: 10, lastRow: 110, firstColumn: 20, lastColumn: 120 })
  const few = visible({ ...LAYOUT, rows: 3, columns: 1 }, { ...SEEN, x: 0, y: 0 })
  expect(few).toEqual({ firstRow: 0, lastRow: 3, firstColumn: 0, lastColumn: 1 })
})

test('a point is on a cell, on a name, or on nothing', () => {
  expect(placeAt(LAYOUT, SEEN, 150, 24)).toEqual({ row: 10, column: 20 })
  expect(placeAt(LAYOUT, SEEN, 649, 423)).toEqual({ row: 109, column: 119 })
  expect(placeAt(LAYOUT, SEEN, 149, 100)).toBeUndefined()
  expect(rowAt(LAYOUT, SEEN, 149, 100)).toBe(29)
  expect(rowAt(LAYOUT, SEEN, 160, 100)).toBeUndefined()
  expect(placeAt({ ...LAYOUT, columns: 1 }, { ...SEEN, x: 0 }, 160, 100)).toBeUndefined()
})

test('a cell out of sight is scrolled to, no further than needed', () => {
  expect(revealed(LAYOUT, SEEN, { row: 50, column: 50 })).toEqual({ x: 100, y: 40 })
  expect(revealed(LAYOUT, SEEN, { row: 0, column: 199 })).toEqual({ x: 500, y: 0 })
  expect(revealed(LAYOUT, SEEN, { row: 999, column: 3 })).toEqual({ x: 15, y: 3600 })
})

test('numbers of columns do not touch', () => {
  expect([labelStep(28, 1), labelStep(5, 3), labelStep(2, 4), labelStep(0.001, 4)]).toEqual([1, 10, 50, 2000])
})

const ALL = { rows: 1000, columns: 200 }
const AT = { row: 500, column: 100 }

test.each([
  ['ArrowLeft', false, { row: 500, column: 99 }],
  ['ArrowRight', true, { row: 500, column: 110 }],
  ['ArrowUp', false, { row: 499, column: 100 }],
  ['ArrowDown', true, { row: 510, column: 100 }],
  ['PageUp', false, { row: 490, column: 100 }],
  ['PageDown', false, { row: 510, column: 100 }],
  ['Home', false, { row: 500, column: 0 }],
  ['End', false, { row: 500, column: 199 }],
  ['Home', true, { row: 0, column: 0 }],
  ['End', true, { row: 999, column: 199 }],
  ['x', false, undefined],
])('%s with Ctrl %s', (key, whole, target) => {
  expect(cellTarget(key, whole, AT, ALL)).toEqual(target)
})

test('the edge is the end', () => {
  expect(cellTarget('ArrowLeft', false, { row: 0, column: 0 }, ALL)).toEqual({ row: 0, column: 0 })
  expect(cellTarget('PageDown', false, { row: 995, column: 0 }, ALL)).toEqual({ row: 999, column: 0 })
})
