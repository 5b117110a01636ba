import { expect, test } from 'vitest'

import { noisiestBlocks } from './noisiest-blocks'

function series(name: string, values: Record<number, number>) {
  const points = Object.entries(values).map(([round, value]) => ({
    round: Number(round),
    value,
    time: '2026-11-23T12:00:00Z',
    bytes_up: 0,
  }))
  return { name, points }
}

test('blocks come by what was measured, the worst first, with what was expected', () => {
  const found = noisiestBlocks([
    series('projection_noise', { 0: 4, 1: 7 }),
    series('projection_noise/norm', { 0: 0.01, 1: 0.02 }),
    series('projection_noise/lm_head', { 0: 5, 1: 12.4 }),
    series('projection_noise/q_proj', { 0: 9 }),
  ])
  expect(found.map(({ block }) => block)).toEqual(['lm_head', 'q_proj', 'norm'])
  expect(found[0]).toEqual({ block: 'lm_head', expected: '5.0 %', measured: '12.4 %' })
  expect(found[1]?.measured).toBe('–')
})

test('of many blocks the twelve worst are shown', () => {
  const many = Array.from({ length: 40 }, (_, index) => series(`projection_noise/${String(index)}`, { 0: index }))
  expect(noisiestBlocks(many).map(({ block }) => block)).toEqual(
    Array.from({ length: 12 }, (_, index) => String(39 - index)),
  )
})
