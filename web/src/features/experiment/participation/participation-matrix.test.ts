import { expect, test } from 'vitest'

import { NOTHING } from '@/lib/heat-map/draw'

import { cellText, csvOf, partsOf, spoken } from './cell-text'
import { ARABIC, TWO_ROUNDS } from './matrix.fixture'
import { firstRound, matrixOf, STATES, windowOf } from './participation-matrix'

const MATRIX = matrixOf(TWO_ROUNDS)

test('real participants come first, numbers in names in their order', () => {
  expect(MATRIX.names).toEqual(['site-5d', 'client-2', 'client-3', 'client-10'])
  expect(MATRIX.displayNames[0]).toBe(ARABIC)
  expect(MATRIX.real).toEqual([true, false, false, false])
  expect([...MATRIX.states].map((state) => (state === NOTHING ? '' : STATES[state]))).toEqual([
    ...['', 'leased'],
    ...['rejected', 'expired'],
    ...['', 'pending'],
    ...['accepted', 'accepted'],
  ])
})

test('nobody and no round are an empty matrix', () => {
  const empty = matrixOf({ rounds: [], displayNames: {} })
  expect([empty.names.length, empty.rounds.length, empty.states.length]).toEqual([0, 0, 0])
})

test('a cell is read as a sentence', () => {
  const read = (row: number, column: number) => spoken(cellText(MATRIX, { row, column }))
  expect(read(3, 0)).toBe('client-10, round 6: accepted, sent 8.19 kB, trained for 1.5 s, train loss 2.500')
  expect(read(3, 1)).toContain('refused: contribution.malformed')
  expect(read(1, 0)).toBe('client-2, round 6: rejected, train loss not a number, refused: training.non_finite')
  expect(read(0, 0)).toBe(`${ARABIC}, round 6: not selected`)
  expect(read(0, 1)).toBe(`${ARABIC}, round 7: training`)
})

test('a file holds every part with its digits, the newest round first', () => {
  expect(partsOf(MATRIX)).toHaveLength(6)
  expect(csvOf(MATRIX).split('\r\n').slice(0, 3)).toEqual([
    'participant,round,state,bytes,seconds,train_loss,refused',
    'site-5d,7,leased,,,,',
    'client-2,7,expired,,,,',
  ])
  expect(csvOf(MATRIX)).toContain('client-2,6,rejected,,,NaN,training.non_finite\r\n')
})

test('a thousand participants over two hundred rounds are loaded whole, and many more in parts', () => {
  expect(windowOf(1000)).toBeGreaterThanOrEqual(200)
  expect([windowOf(0), windowOf(1_000_000)]).toEqual([2000, 5])
  expect([firstRound(5000, 400), firstRound(7, 400)]).toEqual([4600, 0])
})
