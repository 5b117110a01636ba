import { expect, test } from 'vitest'

import { parseQuery, queryText } from './query'

const meant = (text: string) =>
  Object.fromEntries(Object.entries(parseQuery(text).filters).filter(([, value]) => value !== undefined))

test.each([
  ['hearts 3', { name: 'hearts 3' }],
  ['algorithm:ferret state:running loss<2', { algorithm: 'ferret', state: ['running'], where: ['eval_loss<2'] }],
  ['state:failed state:cancelled', { state: ['failed', 'cancelled'] }],
  ['tag:"K search" tag:b data:jsonl project:lab', { tag: ['K search', 'b'], dataset: 'jsonl', project: 'lab' }],
  ['is:stalled is:archived', { stalled: 'only', archived: 'only' }],
  ['rouge>=30 rate<1e-3 K>4096 rounds>5', { where: ['rouge_l>=30', 'learning_rate<1e-3', 'K>4096', 'rounds>5'] }],
  ['Demo: twelve tasks', { name: 'Demo: twelve tasks' }],
  ['a<b luck<2', { name: 'a<b luck<2' }],
  ['', {}],
])('%s', (text, filters) => {
  expect(meant(text)).toEqual(filters)
})

test('a value that a filter does not have is named, and filters nothing', () => {
  expect(parseQuery('state:runing is:late tag: x')).toMatchObject({
    filters: { name: 'x', state: undefined, tag: undefined },
    unknown: ['state:runing', 'is:late', 'tag:'],
  })
})

test('the text of filters means the same filters', () => {
  const { filters } = parseQuery('hearts tag:"K search" state:running is:stalled data:jsonl loss<2 project:lab')
  expect(queryText(filters)).toBe('hearts state:running data:jsonl project:lab tag:"K search" is:stalled eval_loss<2')
  expect(parseQuery(queryText(filters)).filters).toEqual(filters)
})
