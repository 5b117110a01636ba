// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import type { ListedExperiment } from '@/api/types'

// uPlot calls it at import, and jsdom does not have it.
vi.hoisted(() => {
  vi.stubGlobal('matchMedia', () => new EventTarget())
})

const { dashboardRouter } = await import('./router')

const DEMO = {
  id: 'exp_1',
  name: 'demo',
  state: 'running',
  algorithm: 'ferret',
  dataset: 'demo',
  rounds: 12,
  round: 3,
  metrics: { eval_loss: { first: 2.7, last: 1.9, best: 1.8 } },
  tags: [],
  seed: 0,
  seed_group: 'g1',
  K: null,
  bytes_per_round: null,
  learning_rate: null,
  bytes_up: 0,
  bytes_down: 0,
  privacy: null,
  bytes_per_upload: null,
  error: null,
  estimated_seconds_left: null,
  archived_at: null,
  finished_at: null,
  created_at: '2026-11-21T12:00:00Z',
} as unknown as ListedExperiment

let asked: URL[]

beforeEach(() => {
  asked = []
  vi.stubGlobal('scrollTo', vi.fn())
})

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

function serve(items: ListedExperiment[], role = 'researcher', projects = ['default'], quickstart: unknown = null) {
  const body = (path: string) => {
    if (path.endsWith('/presets')) return { items: [], quickstart }
    if (path.endsWith('/experiments')) return { items, next_cursor: null }
    return path.endsWith('/me') ? { name: 'ada', role, projects } : { formats: {} }
  }
  vi.stubGlobal('fetch', (request: Request) => {
    asked.push(new URL(request.url))
    return Promise.resolve(Response.json(body(new URL(request.url).pathname)))
  })
}

function visit(address: string) {
  const router = dashboardRouter(createMemoryHistory({ initialEntries: [address] }))
  render(
    <QueryClientProvider client={new QueryClient()}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  )
  return router
}

function listQueries(): string[] {
  return asked.filter(({ pathname }) => pathname.endsWith('/experiments')).map(({ search }) => search)
}

test('the list shows state, progress and the last loss', async () => {
  serve([DEMO])
  visit('/')
  const row = await screen.findByTestId('experiment-row')
  expect(row.textContent).toContain('running')
  expect(row.textContent).toContain('3 / 12')
  expect(row.textContent).toContain('1.900')
  expect(document.title).toBe('Experiments · Ferret')
})

test('ticked rows lead to their comparison', async () => {
  serve([DEMO, { ...DEMO, id: 'exp_2', name: 'other' }])
  visit('/')
  expect(screen.queryByRole('link', { name: /^Compare \d/ })).toBeNull()
  fireEvent.click(await screen.findByRole('checkbox', { name: 'Select other' }))
  fireEvent.click(screen.getByRole('checkbox', { name: 'Select demo' }))
  expect(screen.getByRole('link', { name: 'Compare 2' }).getAttribute('href')).toBe('/compare?ids=exp_2,exp_1')
  fireEvent.click(screen.getByRole('button', { name: 'Clear' }))
  expect(screen.queryByRole('link', { name: /^Compare \d/ })).toBeNull()
})

test('without experiments a researcher runs the quickstart and sees its page', async () => {
  const quickstart = { name: 'quickstart', rounds: 5 }
  serve([], 'researcher', ['default'], quickstart)
  const sent: unknown[] = []
  const answer: (request: Request) => Promise<Response> = window.fetch.bind(window)
  vi.stubGlobal('fetch', async (request: Request) => {
    if (request.method !== 'POST') return answer(request)
    sent.push(await request.json())
    return Response.json({ ...DEMO, id: 'exp_9' }, { status: 202 })
  })
  const router = visit('/')
  fireEvent.click(await screen.findByRole('button', { name: 'Run the quickstart' }))
  await waitFor(() => {
    expect(router.state.location.pathname).toBe('/experiments/exp_9')
  })
  expect(sent).toEqual([quickstart])
})

test('a server that cannot run the quickstart leads to the form', async () => {
  serve([])
  visit('/')
  await screen.findByText('No experiment yet')
  await waitFor(() => {
    expect(screen.getAllByRole('link', { name: 'New experiment' })).toHaveLength(2)
  })
  expect(screen.queryByRole('button', { name: 'Run the quickstart' })).toBeNull()
})

test('without experiments a viewer sees who can submit one', async () => {
  serve([], 'viewer')
  visit('/')
  expect(await screen.findByText(/that a researcher submits/)).toBeTruthy()
  expect(screen.queryByRole('button', { name: 'Run the quickstart' })).toBeNull()
})

test('a user without a project sees who can add them', async () => {
  serve([], 'researcher', [])
  visit('/')
  expect(await screen.findByText(/ask an administrator/)).toBeTruthy()
})

test('a user of several projects can choose one, and sees each experiment’s project', async () => {
  serve([{ ...DEMO, project: 'hearts' }], 'viewer', ['default', 'hearts'])
  visit('/')
  expect((await screen.findByTestId('experiment-row')).textContent).toContain('hearts')
  fireEvent.click(screen.getByRole('button', { name: 'hearts' }))
  await waitFor(() => {
    expect(listQueries().at(-1)).toContain('project=hearts')
  })
})

test('filters go from the address to the server', async () => {
  serve([])
  visit('/?state=running&state=failed&name=demo')
  expect(await screen.findByText('No experiment matches')).toBeTruthy()
  expect(listQueries()).toEqual(['?state=running&state=failed&name=demo&limit=100'])
})

test('an address typed wrongly breaks no page and filters nothing', async () => {
  serve([DEMO])
  visit('/?state=sleeping&archived=perhaps&project=&name=')
  expect(await screen.findByTestId('experiment-row')).toBeTruthy()
  expect(listQueries()).toEqual(['?limit=100'])
})

test('filters go from the page to the address', async () => {
  serve([DEMO])
  const router = visit('/')
  fireEvent.click(await screen.findByRole('button', { name: 'failed' }))
  const field = screen.getByLabelText<HTMLInputElement>('Filter experiments')
  await waitFor(() => {
    expect(field.value).toBe('state:failed')
  })
  fireEvent.change(field, { target: { value: 'state:failed gsm' } })
  await waitFor(() => {
    expect(router.state.location.searchStr).toBe('?state=failed&name=gsm')
  })
})

test('an address that does not exist leads back to the list', async () => {
  serve([])
  visit('/nowhere')
  expect(await screen.findByText('No such page')).toBeTruthy()
})

/** The labels of the top bar, with the current page marked. */
async function topBar(address: string, role: string) {
  serve([DEMO], role)
  visit(address)
  await screen.findByTestId('account-menu')
  const links = within(screen.getByRole('navigation', { name: 'Pages' })).getAllByRole('link')
  return links.map((link) => `${link.textContent}${link.ariaCurrent === null ? '' : ` (${link.ariaCurrent})`}`)
}

test('every page has the links that its user may follow, with the current one marked', async () => {
  const all = ['Compare', 'Alerts', 'System', 'People']
  expect(await topBar('/?state=failed', 'admin')).toEqual(['Experiments (page)', ...all])
  cleanup()
  expect(await topBar('/experiments/exp_1', 'admin')).toEqual(['Experiments (true)', ...all])
  cleanup()
  expect(await topBar('/alerts', 'viewer')).toEqual(['Experiments', 'Compare', 'Alerts (page)'])
})
