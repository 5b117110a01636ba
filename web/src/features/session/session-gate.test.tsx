// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'

import { ApiProblem } from '@/api/problem'
import { shownToasts } from '@/lib/ui/toasts'

import { SessionGate } from './session-gate'

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

/** A server with one token and one account, which keeps one session. */
function serve(token: string, provider: string | null = null) {
  let session = false
  const problem = (code: string) =>
    Response.json({ code, title: 'The token is not valid', detail: 'Copy it again.' }, { status: 401 })
  vi.stubGlobal('fetch', async (request: Request) => {
    if (request.url.endsWith('/session')) {
      const shown = (await request.json()) as Record<string, string>
      session = shown.token === token || (shown.name === 'ada' && shown.password === ' spaces count ')
      return session ? new Response(null, { status: 204 }) : problem('auth.invalid')
    }
    if (request.url.endsWith('/sign-in')) return Response.json({ provider })
    if (request.url.endsWith('/sign-in/oidc')) return problem('oidc.unreachable')
    return session ? Response.json({ name: 'ferret' }) : problem('auth.missing')
  })
}

function open(refused?: ApiProblem) {
  const queryClient = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  render(
    <QueryClientProvider client={queryClient}>
      <SessionGate refused={refused}>the dashboard</SessionGate>
    </QueryClientProvider>,
  )
}

async function enter(secret: string, name = '') {
  fireEvent.change(await screen.findByLabelText('Name'), { target: { value: name } })
  fireEvent.change(screen.getByLabelText('Password or admin token'), { target: { value: secret } })
  fireEvent.submit(screen.getByTestId('sign-in'))
}

test('without a session the form shows where the token is', async () => {
  serve('right')
  open()
  expect((await screen.findByTestId('sign-in')).textContent).toContain('FERRET_HOME/admin.token')
  expect(screen.queryByText('the dashboard')).toBeNull()
})

test('the right token opens the dashboard', async () => {
  serve('right')
  open()
  await enter(' right ')
  expect(await screen.findByText('the dashboard')).toBeTruthy()
})

test('name and password of an account open the dashboard', async () => {
  serve('right')
  open()
  await enter(' spaces count ', ' ada ')
  expect(await screen.findByText('the dashboard')).toBeTruthy()
})

test('an admin token is not a password', async () => {
  serve('right')
  open()
  await enter('right', 'ada')
  expect(await screen.findByRole('alert')).toBeTruthy()
})

test('a wrong token is refused with the reason', async () => {
  serve('right')
  open()
  await enter('wrong')
  expect((await screen.findByRole('alert')).textContent).toBe('The token is not valid. Copy it again.')
})

test('the reason why the address did not sign in is shown, with its code', async () => {
  serve('right')
  open(new ApiProblem({ code: 'oidc.no_role', title: 'You have no role here', detail: 'It has changed.' }, 403))
  const alert = await screen.findByRole('alert')
  expect(alert.textContent).toContain('It has changed.')
  expect(alert.textContent).toContain('oidc.no_role')
})

test('a link that was used names the command for a new one', async () => {
  serve('right')
  open(new ApiProblem({ code: 'auth.invalid', title: 'The token is not valid', detail: 'Copy it again.' }, 401))
  const alert = await screen.findByRole('alert')
  expect(alert.textContent).toContain('This link was used')
  expect(alert.textContent).toContain('ferret dashboard')
})

test('next to a session a refused link is reported, and the dashboard of the session opens', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ name: 'ferret' })))
  open(new ApiProblem({ code: 'auth.invalid', title: 'The token is not valid', detail: 'Copy it again.' }, 401))
  expect(await screen.findByText('the dashboard')).toBeTruthy()
  expect(shownToasts().map(({ problem }) => problem.code)).toEqual(['auth.invalid'])
})

test('a provider has a button, and its error is shown', async () => {
  serve('right', 'Hospital')
  open()
  fireEvent.click(await screen.findByRole('button', { name: 'Sign in with Hospital' }))
  expect((await screen.findByRole('alert')).textContent).toContain('oidc.unreachable')
})

test('the button is missing without a provider', async () => {
  serve('right')
  open()
  await screen.findByTestId('sign-in')
  expect(screen.getAllByRole('button').map((button) => button.textContent)).toEqual(['Sign in'])
})

test('a server that does not answer is a problem with a next step, not a sign-in form', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')))
  open()
  expect((await screen.findByRole('alert')).textContent).toContain('ferret serve')
  expect(screen.queryByTestId('sign-in')).toBeNull()
})
