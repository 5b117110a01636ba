import { expect, test } from 'vitest'

import { readViews, withoutView, withView, writeViews } from './views'

function storage(first?: string): Storage {
  const kept = new Map(first === undefined ? [] : [['ferret.views.ada', first]])
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
  } as unknown as Storage
}

test('a person’s views are kept by name, and nobody else’s', () => {
  const browser = storage()
  const views = withView(withView([], { name: 'running', address: '?state=running' }), { name: 'good', address: '' })
  writeViews('ada', views, browser)
  expect(readViews('ada', browser)).toEqual([
    { name: 'good', address: '' },
    { name: 'running', address: '?state=running' },
  ])
  expect(readViews('bob', browser)).toEqual([])
  expect(withView(views, { name: 'good', address: '?sort=name' })[0]?.address).toBe('?sort=name')
  expect(withoutView(views, 'good').map(({ name }) => name)).toEqual(['running'])
})

test.each(['{', '7', '[null, {"name": 1}]'])('%s in the browser gives an empty list', (kept) => {
  expect(readViews('ada', storage(kept))).toEqual([])
})
