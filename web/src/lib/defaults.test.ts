import { expect, test } from 'vitest'

import { schemaDefaults, withoutDefaults } from './defaults'

const SCHEMA = {
  $defs: {
    Local: { properties: { rate: { default: 0.1 }, steps: { default: 8 } } },
    Rule: { default: 'x' },
  },
  properties: {
    K: { default: null },
    path: {},
    rule: { $ref: '#/$defs/Rule', default: 'tensor' },
    local: { $ref: '#/$defs/Local', default: { rate: 0.5 } },
  },
}

test('defaults are found in nested tables, and a table’s own default wins', () => {
  expect(schemaDefaults(SCHEMA)).toEqual({ K: null, rule: 'tensor', local: { rate: 0.5, steps: 8 } })
  expect(schemaDefaults(undefined)).toEqual({})
})

test('what differs is left, whole tables go', () => {
  const values = { K: null, path: 'a', rule: 'tensor', local: { rate: 0.5, steps: 9 }, list: [1, 2] }
  expect(withoutDefaults(values, { ...schemaDefaults(SCHEMA), list: [1, 2] })).toEqual({
    path: 'a',
    local: { steps: 9 },
  })
  expect(withoutDefaults({ a: { b: 1 } }, { a: { b: 1 } })).toEqual({})
})
