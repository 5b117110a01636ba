// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import type { CurrentUser, Experiment, Rejection } from '@/api/types'
import { FakeEventSource } from '@/lib/testing/fake-event-source'

// They draw on a canvas, which jsdom has not.
vi.mock('@/features/experiment/charts/charts', () => ({ Charts: () => null }))
vi.mock('@/features/compare/compare-page', () => ({ ComparePage: () => null }))

const { dashboardRouter } = await import('./router')

const DEMO = {
  id: 'exp_1',
  name: 'demo',
  state: 'running',
  stalled: null,
  algorithm: 'ferret',
  dataset: 'demo',
  rounds: 12,
  round: 3,
  participants: 4,
  shapes: { weight: [64, 64] },
  spec: { name: 'demo', participants: { simulated: 4 } },
  error: null,
  base_digest: null,
  digest: null,
  bytes_up: 0,
  bytes_down: 0,
  privacy: null,
  metrics: {},
  last_event_seq: 9,
  cloned_from: null,
  tags: [],
  notes: '',
  archived_at: null,
  created_at: '2026-11-21T12:00:00Z',
  started_at: '2026-11-21T12:00:01Z',
  finished_at: null,
  links: { stream: '/api/v1/experiments/exp_1/events/stream' },
} as unknown as Experiment

interface Asked {
  method: string
  path: string
  body: unknown
}

let asked: Asked[]
let stored: Experiment
let rejections: Rejection[]
let me: Pick<CurrentUser, 'name' | 'role'>

beforeEach(() => {
  asked = []
  rejections = []
  me = { name: 'ada', role: 'researcher' }
  FakeEventSource.install()
  vi.stubGlobal('scrollTo', vi.fn())
  // jsdom has the element but not its methods.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true
  }
  HTMLDialogElement.prototype.close = function () {
    this.open = false
  }
  HTMLElement.prototype.hidePopover = vi.fn()
  vi.stubGlobal('fetch', async (request: Request) => {
    const path = new URL(request.url).pathname.replace('/api/v1', '')
    if (request.method === 'GET') return Response.json(read(path))
    asked.push({ method: request.method, path, body: await request.json().catch(() => undefined) })
    return write(path, request.method)
  })
})

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

function read(path: string): unknown {
  if (path === '/experiments/exp_1') return stored
  if (path.endsWith('/metrics')) return { series: [] }
  if (path.endsWith('/rejections')) return { items: rejections, next_cursor: null }
  if (path === '/me') return me
  return path === '/info' ? { formats: {} } : { items: [], next_cursor: null }
}

function write(path: string, method: string): Response {
  if (method === 'DELETE') return new Response(null, { status: 204 })
  const verb = path.split(':')[1] ?? ''
  if (verb === 'extend') {
    const problem = { code: 'extension.refused', title: 'No more rounds', detail: 'clone it with more rounds' }
    return Response.json(problem, { status: 409 })
  }
  const after: Record<string, Partial<Experiment>> = {
    pause: { state: 'paused' },
    resume: { state: 'running' },
    cancel: { state: 'cancelled' },
    archive: { archived_at: '2026-11-21T13:00:00Z' },
  }
  stored = { ...stored, ...after[verb] }
  return Response.json(stored)
}

async function visit(changes: Partial<Experiment> = {}, search = '') {
  stored = { ...DEMO, ...changes }
  const router = dashboardRouter(createMemoryHistory({ initialEntries: [`/experiments/exp_1${search}`] }))
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  )
  await screen.findByTestId('experiment-state')
  await screen.findByText(me.role)
  return router
}

function actions(): (string | null)[] {
  const group = screen.getByRole('group', { name: 'Actions' })
  return [...group.querySelectorAll('a, button:not([popovertarget])')].map((button) => button.textContent)
}

function press(label: string) {
  fireEvent.click(
    within(screen.getByRole('group', { name: 'Actions' })).getByRole('button', { name: label, hidden: true }),
  )
}

/** The open dialog, which jsdom shows to nobody. */
function dialog(): HTMLDialogElement {
  const open = document.querySelector<HTMLDialogElement>('dialog[open]')
  if (open === null) throw new Error('no dialog is open')
  return open
}

function confirm() {
  const form = dialog().querySelector('form')
  if (form === null) throw new Error('the dialog has no form')
  fireEvent.submit(form)
}

test.each<[Partial<Experiment>, string[]]>([
  [{ state: 'queued' }, ['Clone', 'Compare with…', 'Alerts', 'Cancel']],
  [{ state: 'running' }, ['Pause', 'Clone', 'Extend', 'Compare with…', 'Alerts', 'Cancel']],
  [{ state: 'paused' }, ['Resume', 'Clone', 'Extend', 'Compare with…', 'Alerts', 'Cancel']],
  [{ state: 'completed' }, ['Extend', 'Clone', 'Compare with…', 'Alerts', 'Archive', 'Delete']],
  [
    { state: 'failed', archived_at: '2026-11-21T13:00:00Z' },
    ['Clone', 'Compare with…', 'Alerts', 'Unarchive', 'Delete'],
  ],
])('what can be done follows from %o', async (changes, expected) => {
  await visit(changes)
  expect(actions()).toEqual(expected)
})

test('a viewer sees why there are no buttons', async () => {
  me = { name: 'eve', role: 'viewer' }
  await visit()
  expect(screen.getByTestId('only-reads').textContent).toContain('researcher')
  expect(screen.queryByRole('group', { name: 'Actions' })).toBeNull()
})

test('pausing shows that it is paused, and how to go on', async () => {
  await visit()
  press('Pause')
  expect((await screen.findByTestId('paused')).textContent).toContain('press Resume')
  expect(screen.getByTestId('experiment-state').textContent).toBe('paused')
  press('Resume')
  await waitFor(() => {
    expect(screen.queryByTestId('paused')).toBeNull()
  })
  expect(asked.map(({ path }) => path)).toEqual(['/experiments/exp_1:pause', '/experiments/exp_1:resume'])
})

test('a stalled experiment shows the reason and the next step', async () => {
  const detail = 'No aggregation worker was seen: start one with ferret worker aggregate.'
  await visit({ stalled: { code: 'worker.missing', detail, since: '2026-11-21T12:00:00Z' } })
  expect(screen.getByTestId('experiment-state').textContent).toBe('stalled')
  expect(screen.getByTestId('stalled').textContent).toContain(detail)
})

test('cancelling needs a confirmation', async () => {
  await visit()
  press('Cancel')
  expect(dialog().textContent).toContain('cannot be undone')
  expect(asked).toEqual([])
  confirm()
  await waitFor(() => {
    expect(screen.getByTestId('experiment-state').textContent).toBe('cancelled')
  })
  expect(asked[0]).toMatchObject({ method: 'POST', path: '/experiments/exp_1:cancel' })
})

test.each([
  [12, {}],
  [3, { stopped: { round: 3, detail: 'no improvement' } as Experiment['stopped'] }],
])('a refused extension from round %d shows the reason in the dialog', async (expected_rounds, changes) => {
  await visit({ state: 'completed', ...changes })
  press('Extend')
  confirm()
  expect(await within(dialog()).findByText('clone it with more rounds')).toBeTruthy()
  expect(asked[0]).toMatchObject({ path: '/experiments/exp_1:extend', body: { rounds: 12, expected_rounds } })
})

test('a clone is written in the form', async () => {
  const router = await visit()
  fireEvent.click(screen.getByRole('link', { name: 'Clone' }))
  await waitFor(() => {
    expect(router.state.location.pathname).toBe('/new')
  })
  expect(router.state.location.search).toEqual({ from: 'exp_1' })
})

test('what is deleted leads back to the list', async () => {
  const router = await visit({ state: 'completed' })
  press('Delete')
  confirm()
  await waitFor(() => {
    expect(router.state.location.pathname).toBe('/')
  })
  expect(asked).toEqual([{ method: 'DELETE', path: '/experiments/exp_1', body: undefined }])
})

test('refused uploads are counted with their reasons', async () => {
  const at = '2026-11-21T12:30:00Z'
  const refused = { participant: 'site-a', display_name: 'Site A', round: 2, created_at: at, updated_at: at }
  rejections = [
    { ...refused, code: 'contribution.non_finite', detail: 'update: holds NaN', count: 3 },
    { ...refused, code: 'round.closed', detail: 'too late', count: 1 },
  ]
  await visit({}, '?tab=rounds')
  const section = await screen.findByTestId('rejections')
  expect(section.textContent).toContain('4 in all')
  expect(section.textContent).toContain('contribution.non_finite')
  expect(section.textContent).toContain('update: holds NaN')
})

test('a failure is shown in a toast, in words', async () => {
  await visit()
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')))
  press('Pause')
  await screen.findByText('Pause failed')
  const told = screen.getByTestId('toasts').textContent
  expect(told).toContain('The server cannot be reached')
  expect(told).not.toContain('Failed to fetch')
})
