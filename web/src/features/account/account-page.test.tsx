// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'

import { AccountPage } from './account-page'

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

const ADA = {
  id: 'usr_1',
  name: 'ada',
  role: 'viewer',
  scopes: ['read', 'write'],
  has_password: true,
  projects: ['hearts'],
}

/** A server with one password. The list holds the passwords of the requests. */
function open(me = ADA): string[] {
  const changed: string[] = []
  vi.stubGlobal('fetch', async (request: Request) => {
    if (request.method === 'GET') return Response.json(request.url.endsWith('/me') ? me : { items: [] })
    const { current, password } = (await request.json()) as Record<string, string>
    if (current !== 'the old password') {
      return Response.json({ code: 'password.invalid', title: 'Wrong', detail: 'not the password' }, { status: 401 })
    }
    changed.push(String(password))
    return new Response(null, { status: 204 })
  })
  render(
    <QueryClientProvider client={new QueryClient()}>
      <AccountPage />
    </QueryClientProvider>,
  )
  return changed
}

async function enter(current: string, password: string, again = password) {
  fireEvent.change(await screen.findByLabelText('Current password'), { target: { value: current } })
  fireEvent.change(screen.getByLabelText(/^New password(?! again)/), { target: { value: password } })
  fireEvent.change(screen.getByLabelText('New password again'), { target: { value: again } })
  fireEvent.submit(screen.getByTestId('password-form'))
}

test('the page shows the user and the permissions of the role', async () => {
  open()
  expect(await screen.findByRole('heading', { name: 'ada' })).toBeTruthy()
  expect(screen.getByText(/viewer: reads the experiments of its projects/)).toBeTruthy()
  expect(screen.getByText('You see the experiments of hearts')).toBeTruthy()
})

test('the password is changed with the one until now', async () => {
  const changed = open()
  await enter('the old password', 'another fine password')
  expect((await screen.findByRole('status')).textContent).toContain('signed out everywhere else')
  expect(changed).toEqual(['another fine password'])
})

test('a wrong password until now is refused with the reason', async () => {
  const changed = open()
  await enter('a guess', 'another fine password')
  expect((await screen.findByRole('alert')).textContent).toContain('not the password')
  expect(changed).toEqual([])
})

test('two new passwords that differ are not sent', async () => {
  const changed = open()
  await enter('the old password', 'another fine password', 'another fine passwort')
  expect((await screen.findByRole('alert')).textContent).toContain('differ')
  expect(changed).toEqual([])
})

test('an account without a password has none to change', async () => {
  open({ ...ADA, has_password: false })
  expect(await screen.findByText('This account has no password.')).toBeTruthy()
  expect(screen.queryByTestId('password-form')).toBeNull()
})
