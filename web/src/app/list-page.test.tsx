// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router'
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'

import { dismissToast, shownToasts } from '@/lib/ui/toasts'

// uPlot calls it at import, and jsdom does not have it.
vi.hoisted(() => {
  vi.stubGlobal('matchMedia', () => new EventTarget())
})

const { dashboardRouter } = await import('./router')

const run = (name: string, changes = {}) => ({
  id: `exp_${name}`,
  name,
  state: 'completed',
  rounds: 3,
  round: 3,
  seed: 1,
  seed_group: 'g1',
  tags: ['hearts'],
  metrics: {},
  bytes_up: 0,
  bytes_down: 0,
  K: null,
  bytes_per_round: null,
  learning_rate: null,
  bytes_per_upload: null,
  error: null,
  estimated_seconds_left: null,
  archived_at: null,
  finished_at: null,
  created_at: '2026-11-21T12:00:00Z',
  ...changes,
})
const RUNS = ['a', 'b', 'c', 'd'].map((name) => run(name))
const GROUP = {
  key: 'g1',
  count: 4,
  states: { completed: 4 },
  metrics: { rouge_l: { last: { mean: 35.24, sd: 1.4, count: 4 }, best: null } },
  bytes_up: 0,
  bytes_down: 0,
  newest: run('d', { metrics: { rouge_l: { first: 1, last: 2, best: 3 } } }),
}

let asked: Request[]

afterEach(() => {
  for (const { action } of shownToasts()) dismissToast(action)
  cleanup()
  window.localStorage.clear()
  vi.unstubAllGlobals()
})

async function visit(address: string) {
  asked = []
  vi.stubGlobal('scrollTo', vi.fn())
  vi.stubGlobal('fetch', (request: Request) => {
    asked.push(request)
    const { pathname } = new URL(request.url)
    if (request.method === 'PATCH') {
      const problem = { code: 'experiment.changed', title: 'Edited in the meantime', detail: '' }
      return Promise.resolve(Response.json(problem, { status: 412 }))
    }
    if (pathname.endsWith('exp_b:archive')) {
      const problem = { code: 'experiment.conflict', title: 'Not now', detail: 'b goes on' }
      return Promise.resolve(Response.json(problem, { status: 409 }))
    }
    const answers: [string, unknown][] = [
      ['/experiments/groups', { items: [GROUP], next_cursor: null }],
      ['/experiments', { items: RUNS, next_cursor: null }],
      ['/exp_a', RUNS[0]],
      ['/me', { name: 'ada', role: 'researcher', projects: ['default'] }],
    ]
    return Promise.resolve(Response.json(answers.find(([end]) => pathname.endsWith(end))?.[1] ?? { formats: {} }))
  })
  const router = dashboardRouter(createMemoryHistory({ initialEntries: [address] }))
  render(
    <QueryClientProvider client={new QueryClient()}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  )
  await screen.findAllByTestId(/-row$/)
  return router
}

const box = (name: string) => screen.getByLabelText<HTMLInputElement>(name)

test('the server sorts by a column, and the URL has the order', async () => {
  const router = await visit('/')
  fireEvent.click(screen.getByRole('button', { name: 'Seed' }))
  await waitFor(() => {
    expect(router.state.location.searchStr).toBe('?sort=seed')
  })
  expect(new URL(asked.at(-1)?.url ?? '').searchParams.get('sort')).toBe('seed')
  expect(screen.getByRole('columnheader', { name: /Seed/ }).getAttribute('aria-sort')).toBe('ascending')
})

test('chosen columns are in the address, and the browser remembers them', async () => {
  const first = await visit('/?columns=state,seed')
  fireEvent.click(box('Seed'))
  await waitFor(() => {
    expect(first.state.location.searchStr).toBe('?columns=state')
  })
  cleanup()
  const again = await visit('/')
  await waitFor(() => {
    expect(again.state.location.searchStr).toBe('?columns=state')
  })
})

test('Shift ticks a range, keys move and tick', async () => {
  await visit('/')
  fireEvent.click(box('Select b'))
  fireEvent.click(box('Select d'), { shiftKey: true })
  expect(screen.getByRole('link', { name: 'Compare 3' })).toBeTruthy()
  fireEvent.keyDown(document.body, { key: 'j' })
  fireEvent.keyDown(document.activeElement ?? document.body, { key: 'x' })
  expect(box('Select a').checked).toBe(true)
})

test('a failure for one of many is shown with its name', async () => {
  await visit('/')
  fireEvent.click(box('Select all that are shown'))
  fireEvent.click(await screen.findByRole('button', { name: 'Archive 4' }))
  await waitFor(() => {
    expect(screen.getByTestId('toasts').textContent).toContain('Failed for 1 of 4')
  })
  expect(screen.getByTestId('toasts').textContent).toContain('b b goes on')
})

test('a name that somebody else changed is not overwritten', async () => {
  await visit('/')
  fireEvent.click(await screen.findByRole('button', { name: 'Edit name of a' }))
  fireEvent.change(box('name of a'), { target: { value: 'mine' } })
  fireEvent.click(screen.getByRole('button', { name: 'Save' }))
  await waitFor(() => {
    expect(screen.getByTestId('toasts').textContent).toContain('Rename failed')
  })
  expect(screen.getByTestId('toasts').textContent).toContain('as it is now')
})

test('seeds are one row with mean and deviation, which opens', async () => {
  const router = await visit('/?group=seed')
  expect(screen.getByTestId('group-row').textContent).toContain('35.2 ± 1.4 %')
  fireEvent.click(screen.getByRole('button', { name: /× 4/ }))
  expect(await screen.findAllByTestId('experiment-row')).toHaveLength(4)
  expect(router.state.location.searchStr).toBe('?group=seed&open=g1')
  expect(asked.some(({ url }) => url.includes('seed_group=g1'))).toBe(true)
})
