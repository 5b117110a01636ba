import { expect, test } from 'vitest'

import { cellTarget } from './keys'

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
