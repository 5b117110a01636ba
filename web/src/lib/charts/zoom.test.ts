import { expect, test } from 'vitest'

import type { Point } from './chart-data'
import { formatZoom, parseZoom, spliced, thinnedRounds, zoomRange } from './zoom'

const START = '2026-11-21T12:00:00Z'

/** The mean of `size` rounds, which took ten seconds each. */
function bucket(last: number, size: number): Point {
  const time = new Date(Date.parse(START) + last * 10_000).toISOString()
  return { first: last - size + 1, round: last, value: last, count: size, time, bytes_up: last * 100 }
}

const COARSE = { name: 'loss', points: [4, 8, 12, 16].map((last) => bucket(last, 4)) }

test('a range of an address is two numbers that rise', () => {
  expect(zoomRange('12.5,40')).toEqual([12.5, 40])
  expect(formatZoom([12.3456, 40])).toBe('12.35,40')
  expect([formatZoom(null), formatZoom([3, 3])]).toEqual([undefined, undefined])
})

test.each(['', '1', '1,', ',1', '2,1', '1,1', '1,2,3', '1,x', 'Infinity,2', 7, ['1', '2'], undefined])(
  '%j is not a range',
  (value) => {
    expect(parseZoom(value)).toBeUndefined()
  },
)

test('a window holds every bucket that reaches into it, over any axis', () => {
  expect(thinnedRounds([COARSE], 'round', START, [5, 9])).toEqual({ from: 5, to: 12 })
  expect(thinnedRounds([COARSE], 'time', START, [50, 75])).toEqual({ from: 5, to: 8 })
  expect(thinnedRounds([COARSE], 'bytes', START, [0, 2000])).toEqual({ from: 1, to: 16 })
  expect(thinnedRounds([COARSE], 'round', START, [17, 30])).toBeUndefined()
})

test('if every round is loaded, nothing finer is requested', () => {
  const points = [bucket(1, 1), bucket(2, 1)]
  expect(thinnedRounds([{ name: 'loss', points }], 'round', START, [0, 9])).toBeUndefined()
  expect(thinnedRounds([], 'round', START, [0, 9])).toBeUndefined()
})

test('finer points take the place of the buckets in their rounds', () => {
  const fine = { name: 'loss', points: [5, 6, 7, 8].map((round) => bucket(round, 1)) }
  const [joined] = spliced([COARSE], [fine], { from: 5, to: 8 })
  expect(joined?.points.map(({ round }) => round)).toEqual([4, 5, 6, 7, 8, 12, 16])
  const [bare] = spliced([COARSE], [], { from: 5, to: 8 })
  expect(bare?.points.map(({ round }) => round)).toEqual([4, 12, 16])
})
