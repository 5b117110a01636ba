import { expect, test } from 'vitest'

import { type FormGroup, groupOf, shown, typed, usualText } from './fields'
import { advancedOf, allFields, basicFields, type Catalog, formOf, named, placesOf } from './form'

const LOCAL = {
  properties: {
    steps: { anyOf: [{ type: 'integer' }, { type: 'null' }], default: 10, unit: 'steps', excludes: ['epochs'] },
    optimizer: { enum: ['adam', 'sgd'], type: 'string', default: 'adam' },
    options: { type: 'object', default: {} },
  },
}
const SCHEMA = {
  $defs: { Local: LOCAL },
  required: ['path'],
  properties: {
    path: { type: 'string', description: 'A file' },
    blocks: { anyOf: [{ enum: ['tensor', 'grouped'], type: 'string' }, { type: 'integer' }], default: 'tensor' },
    guard: { type: 'boolean', default: true },
    one: { const: 'paper', type: 'string', default: 'paper' },
    either: { anyOf: [{ const: 'paper', type: 'string' }, { type: 'null' }], default: null },
    targets: { type: 'array', default: ['q'] },
    rate: { type: 'number', default: 0.5 },
    local: { $ref: '#/$defs/Local', default: { optimizer: 'sgd' }, description: 'Training' },
  },
}

function kinds(group: FormGroup) {
  return Object.fromEntries(group.fields.map(({ path, kind }) => [path.join('.'), kind]))
}

test('every kind of value has its input', () => {
  const group = groupOf(['a'], SCHEMA)
  expect(kinds(group)).toEqual({
    'a.path': 'text',
    'a.blocks': 'text',
    'a.guard': 'flag',
    'a.one': 'choice',
    'a.either': 'choice',
    'a.targets': 'list',
    'a.rate': 'number',
  })
  expect(group.fields[0]).toMatchObject({ required: true, description: 'A file', usual: null })
  expect(group.fields[1]?.options).toEqual(['tensor', 'grouped'])
})

test('a nested table is a group, and its own defaults win', () => {
  const [local] = groupOf(['a'], SCHEMA).groups
  expect(local?.path).toEqual(['a', 'local'])
  expect(local?.description).toBe('Training')
  expect(local && kinds(local)).toEqual({
    'a.local.steps': 'number',
    'a.local.optimizer': 'choice',
    'a.local.options': 'json',
  })
  expect(local?.fields.map(({ usual }) => usual)).toEqual([10, 'sgd', {}])
  expect(local?.fields[0]).toMatchObject({ unit: 'steps', excludes: ['epochs'] })
})

const CHOICE = { properties: { name: { type: 'string', description: 'Which' } }, required: ['name'] }
const CATALOG = {
  specification: {
    $defs: { Choice: CHOICE },
    required: ['name', 'dataset'],
    properties: {
      name: { type: 'string' },
      dataset: { $ref: '#/$defs/Choice' },
      algorithm: { $ref: '#/$defs/Choice', default: { name: 'ferret' } },
    },
  },
  entries: {
    algorithm: [
      { name: 'fedavg', title: 'FedAvg', description: '', schema: { properties: { mu: { type: 'number' } } } },
      { name: 'ferret', title: 'Ferret', description: '', schema: { properties: { K: { type: 'integer' } } } },
    ],
    dataset: [{ name: 'jsonl', title: 'Lines', description: '', schema: SCHEMA }],
    partition: [],
  },
} as unknown as Catalog

test('the options follow the choice', () => {
  const names = (spec: object) => allFields(formOf(CATALOG, spec as never)).map(({ path }) => path.join('.'))
  expect(names({})).toEqual(['name', 'dataset.name', 'algorithm.name', 'algorithm.K'])
  expect(names({ algorithm: { name: 'fedavg' } })).toContain('algorithm.mu')
  expect(names({ dataset: { name: 'jsonl' } })).toContain('dataset.local.steps')
  expect(names({ dataset: { name: 'unknown' } })).toContain('dataset.name')
})

test('what has no default must be chosen', () => {
  const fields = allFields(formOf(CATALOG, {}))
  expect(fields.filter(({ required }) => required).map(({ path }) => path.join('.'))).toEqual(['name', 'dataset.name'])
  expect([...placesOf(formOf(CATALOG, {}))]).toEqual([
    'name',
    'dataset',
    'dataset.name',
    'algorithm',
    'algorithm.name',
    'algorithm.K',
  ])
})

test('the first fields have plain names, and the rest is advanced', () => {
  const form = formOf(CATALOG, {})
  const basics = basicFields(form)
  const shown = basics.map(({ label, field }) => `${label} ${field.path.join('.')}`)
  expect(shown).toContain('Data dataset.name')
  const rest = allFields(advancedOf(form, basics))
  expect([...basics.map(({ field }) => field), ...rest].map(({ path }) => path.join('.')).sort()).toEqual(
    allFields(form)
      .map(({ path }) => path.join('.'))
      .sort(),
  )
})

test('options go with the name of what they belong to', () => {
  const name = (spec: object) => named(CATALOG.specification, spec as never)
  expect(name({ algorithm: { K: 9 } })).toEqual({ algorithm: { name: 'ferret', K: 9 } })
  expect(name({ algorithm: { name: 'ferret' } })).toEqual({})
  expect(name({ algorithm: { name: 'fedavg' }, dataset: { path: 'a' } })).toEqual({
    algorithm: { name: 'fedavg' },
    dataset: { path: 'a' },
  })
})

test.each([
  ['number', '1e-4', 1e-4],
  ['number', ' 12 ', 12],
  ['number', '9223372036854775807', '9223372036854775807'],
  ['number', 'many', 'many'],
  ['list', 'q_proj, v_proj', ['q_proj', 'v_proj']],
  ['json', '{"eps": 1e-8}', { eps: 1e-8 }],
  ['json', '{eps', '{eps'],
  ['text', 'a b ', 'a b '],
  ['choice', 'adam', 'adam'],
  ['number', ' ', undefined],
] as const)('%s %s is %s', (kind, text, value) => {
  expect(typed(text, { kind, options: [] })).toEqual(value)
})

test('a word or a number', () => {
  const blocks = { kind: 'text', options: ['tensor', 'grouped'] } as const
  expect(typed('tensor', { ...blocks, options: [...blocks.options] })).toBe('tensor')
  expect(typed('7', { ...blocks, options: [...blocks.options] })).toBe(7)
})

test('what is shown is what was typed', () => {
  expect(shown(1e-4)).toBe('0.0001')
  expect(shown(['a', 'b'])).toBe('a, b')
  expect(shown({ a: 1 })).toBe('{"a":1}')
  expect(shown(undefined)).toBe('')
})

test('defaults in words', () => {
  expect([null, true, false, {}, 5, 'sgd'].map(usualText)).toEqual(['unset', 'yes', 'no', 'none', '5', 'sgd'])
})
