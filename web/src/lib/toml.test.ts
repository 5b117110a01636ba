import { expect, test } from 'vitest'

import { toToml } from './toml'

test('values come before tables, tables under their full names', () => {
  const spec = {
    algorithm: { name: 'ferret', K: null, local: { learning_rate: 0.001, clip: true } },
    name: 'quick "start"',
    rounds: 5,
  }
  expect(toToml(spec)).toBe(
    `name = "quick \\"start\\""
rounds = 5

[algorithm]
name = "ferret"

[algorithm.local]
learning_rate = 0.001
clip = true`,
  )
})

test('lists are inline, tables in them too; odd names are quoted', () => {
  expect(toToml({ layers: ['a', 'b'], steps: [{ at: 1, by: null }], 'per cent': 1e-7 })).toBe(
    'layers = ["a", "b"]\nsteps = [{ at = 1 }]\n"per cent" = 1e-7',
  )
})

test('a table of tables alone needs no head, and nothing is nothing', () => {
  expect(toToml({ a: { b: { c: 1 } }, empty: {} })).toBe('[a.b]\nc = 1')
  expect(toToml({})).toBe('')
})
