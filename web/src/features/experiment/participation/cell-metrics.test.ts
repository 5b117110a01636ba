import { expect, test } from 'vitest'

import { NOTHING } from '@/lib/heat-map/draw'
import { type Rgb, SHADES } from '@/lib/heat-map/scale'
import { contrast, distance, GROUND, oklab, seen, SIGHT } from '@/lib/testing/colour-vision'

import { coloured, NO_NUMBER, notANumberColour, REJECTED, stateColours, UNTOLD } from './cell-metrics'
import { TWO_ROUNDS } from './matrix.fixture'
import { matrixOf, STATES } from './participation-matrix'

const MATRIX = matrixOf(TWO_ROUNDS)
const THEMES = ['light', 'dark'] as const

function hex(colour: Rgb): string {
  return `#${colour.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}

test('by loss, numbers have a shade; non-numbers, unreported losses and rejections have separate marks', () => {
  const { cells, domain } = coloured(MATRIX, 'loss', false)
  expect(domain).toEqual({ low: 2, high: 2.5, log: false })
  expect([...cells.places]).toEqual([NOTHING, UNTOLD, NO_NUMBER, UNTOLD, NOTHING, UNTOLD, SHADES - 1, 0])
  expect(coloured(MATRIX, 'bytes', false).cells.places[2]).toBe(REJECTED)
  expect([cells.signs[REJECTED], cells.signs[NO_NUMBER]]).toEqual(['cross', 'line'])
  expect(cells.colours).toHaveLength(NO_NUMBER + 1)
})

test('an unreported metric has no scale', () => {
  const silent = matrixOf({ rounds: TWO_ROUNDS.rounds.slice(0, 0), displayNames: {} })
  expect(coloured(silent, 'duration', true).domain).toBeUndefined()
})

test.each(THEMES)('every state contrasts with the %s background', (theme) => {
  const colours = [...STATES.map((state) => stateColours(theme === 'dark')[state]), notANumberColour(theme === 'dark')]
  expect(colours.map(hex).filter((colour) => contrast(colour, GROUND[theme]) < 3)).toEqual([])
})

test.each(Object.keys(SIGHT))('states differ for people with cones: %s', (sight) => {
  const matrix = SIGHT[sight]
  if (matrix === undefined) throw new Error(sight)
  for (const theme of THEMES) {
    const shown = STATES.map((state) => oklab(seen(hex(stateColours(theme === 'dark')[state]), matrix)))
    const near = shown.flatMap((a, index) => shown.slice(index + 1).filter((b) => distance(a, b) < 0.08))
    expect(near).toEqual([])
  }
})
