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
    const { pathname, searchParams } = new URL(request.url)
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
      ['/experiments', { items: RUNS.filter(named(searchParams.get('name') ?? '')), next_cursor: null }],
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

function named(part: string) {
  return ({ name }: { name: string }) => name.includes(part)
}

const box = (name: string) => screen.getByLabelText<HTMLInputElement>(name)

test('the server sorts by a column, and the URL has the order', async () => {
  const router = await visit('/?columns=seed')
  fireEvent.click(screen.getByRole('button', { name: 'Seed' }))
  await waitFor(() => {
    expect(router.state.location.searchStr).toBe('?columns=seed&sort=seed')
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

test('a filter takes hidden rows out of the selection', async () => {
  await visit('/')
  fireEvent.click(box('Select a'))
  fireEvent.click(box('Select b'))
  fireEvent.change(box('Filter experiments'), { target: { value: 'b' } })
  expect(await screen.findByRole('link', { name: 'Compare 1' })).toBeTruthy()
  fireEvent.change(box('Filter experiments'), { target: { value: '' } })
  await screen.findByLabelText('Select a')
  expect(box('Select a').checked).toBe(false)
  expect(box('Select b').checked).toBe(true)
})

test('a typed query goes to the address and to the server, and chips change its text', async () => {
  const router = await visit('/')
  const field = box('Filter experiments')
  fireEvent.change(field, { target: { value: 'algorithm:ferret loss<2 ' } })
  await waitFor(() => {
    expect(router.state.location.searchStr).toBe('?algorithm=ferret&where=eval_loss%3C2')
  })
  expect(field.value).toBe('algorithm:ferret loss<2 ')
  expect(new URL(asked.at(-1)?.url ?? '').searchParams.get('where')).toBe('eval_loss<2')
  fireEvent.click(screen.getByRole('button', { name: 'running' }))
  await waitFor(() => {
    expect(field.value).toBe('state:running algorithm:ferret eval_loss<2')
  })
  fireEvent.change(field, { target: { value: 'state:runing' } })
  expect(await screen.findByText(/Not a filter: state:runing/)).toBeTruthy()
})

test('a view is saved under a name and restored', async () => {
  HTMLElement.prototype.hidePopover = vi.fn() // jsdom does not have it
  const router = await visit('/?state=completed&sort=name')
  const name = await screen.findByLabelText<HTMLInputElement>('Name of this view')
  fireEvent.change(name, { target: { value: 'done' } })
  fireEvent.submit(name)
  fireEvent.click(screen.getByRole('button', { name: 'Clear filters', hidden: true }))
  await waitFor(() => {
    expect(router.state.location.searchStr).toBe('?sort=name')
  })
  fireEvent.click(screen.getByText('done'))
  await waitFor(() => {
    expect(router.state.location.searchStr).toBe('?state=completed&sort=name')
  })
  fireEvent.click(screen.getByLabelText('Delete the view done'))
  expect(screen.queryByText('done')).toBeNull()
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
