import { expect, test } from 'vitest'

import { shown, typed, usualText } from './form-values'

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
