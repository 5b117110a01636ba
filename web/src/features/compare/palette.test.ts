import { expect, test } from 'vitest'

import { contrast, distance, GROUND, oklab, seen, SIGHT } from '@/lib/testing/colour-vision'

import { COLOURS, lineStyle } from './palette'
import { MOST_RUNS } from './url-state'

const PAIRS = COLOURS.flatMap((a, index) => COLOURS.slice(index + 1).map((b) => [a, b] as const))

test('twenty runs are drawn in twenty ways', () => {
  const ways = Array.from({ length: MOST_RUNS }, (_, place) => JSON.stringify(lineStyle(place)))
  expect(new Set(ways).size).toBe(MOST_RUNS)
})

test.each(['light', 'dark'] as const)('every colour contrasts with the %s background', (theme) => {
  for (const colour of COLOURS) expect(contrast(colour[theme], GROUND[theme])).toBeGreaterThan(3)
})

test.each(Object.keys(SIGHT))('colours differ for people with cones: %s', (sight) => {
  const matrix = SIGHT[sight]
  if (matrix === undefined) throw new Error(sight)
  for (const theme of ['light', 'dark'] as const) {
    const nearest = PAIRS.map(([a, b]) => ({
      pair: `${a[theme]} ${b[theme]}`,
      distance: distance(oklab(seen(a[theme], matrix)), oklab(seen(b[theme], matrix))),
    })).filter((pair) => pair.distance < 0.05)
    expect(nearest).toEqual([])
  }
})
