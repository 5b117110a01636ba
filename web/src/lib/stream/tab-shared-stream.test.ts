// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { FakeEventSource } from '@/lib/testing/fake-event-source'
import { installTabs, sleep, uninstallTabs } from '@/lib/testing/fake-tabs'

import { openEventStream, type StreamStatus } from './event-stream'

const LOCK = 'ferret.stream /stream'
let locks: ReturnType<typeof installTabs>

beforeEach(() => {
  vi.useFakeTimers()
  FakeEventSource.install()
  locks = installTabs()
})

afterEach(() => {
  uninstallTabs()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** One tab that follows, and the messages that it received. */
async function tab(after = 40, url = '/stream') {
  const seen: number[] = []
  const statuses: StreamStatus[] = []
  const close = openEventStream({
    url,
    after,
    types: ['round.opened'],
    onMessage: (data) => seen.push((JSON.parse(data) as { seq: number }).seq),
    onStatus: (status) => statuses.push(status),
  })
  await settled()
  return { seen, statuses, close }
}

/** Locks are granted a few turns later. */
const settled = () => vi.advanceTimersByTimeAsync(0)

function send(...numbers: number[]) {
  for (const seq of numbers) FakeEventSource.latest.send({ seq, type: 'round.opened' })
}

const opened = () => FakeEventSource.opened.map(({ url }) => url)
const open = () => FakeEventSource.opened.filter(({ readyState }) => readyState !== FakeEventSource.CLOSED)

test('eight tabs have one connection, and each sees every event once', async () => {
  const tabs = await Promise.all(Array.from({ length: 8 }, () => tab()))
  FakeEventSource.latest.open()
  send(41, 42)
  expect(opened()).toEqual(['/stream?after=40'])
  expect(tabs.map(({ seen }) => seen)).toEqual(Array(8).fill([41, 42]))
  expect(tabs.map(({ statuses }) => statuses.at(-1))).toEqual(Array(8).fill('live'))
})

test('when the reading tab closes another goes on behind the last event', async () => {
  const [first, second, third] = [await tab(), await tab(), await tab()]
  send(41, 42)
  first.close()
  await settled()
  send(43)
  expect(opened()).toEqual(['/stream?after=40', '/stream?after=42'])
  expect(open()).toHaveLength(1)
  expect([first.seen, second.seen, third.seen]).toEqual([
    [41, 42],
    [41, 42, 43],
    [41, 42, 43],
  ])
})

test('when the reading tab crashes nothing is lost and nothing comes twice', async () => {
  const [, second] = [await tab(), await tab()]
  send(41)
  locks.lose(LOCK)
  FakeEventSource.latest.close()
  await settled()
  send(42, 42)
  expect(second.seen).toEqual([41, 42])
})

test('a tab that knows less gets what it lacks, the others nothing twice', async () => {
  const first = await tab()
  send(41, 42)
  const late = await tab(40)
  send(41, 42, 43)
  expect(opened()).toEqual(['/stream?after=40', '/stream?after=40'])
  expect([first.seen, late.seen]).toEqual([
    [41, 42, 43],
    [41, 42, 43],
  ])
})

test('an event that comes before the ones that a tab lacks waits for them', async () => {
  const first = await tab()
  send(41, 42)
  const wake = sleep()
  const late = await tab(40) // its request has not arrived yet
  wake()
  send(43)
  expect(late.seen).toEqual([])
  send(41, 42, 43)
  expect([first.seen, late.seen]).toEqual([
    [41, 42, 43],
    [41, 42, 43],
  ])
})

test('a new reader that is ahead of another tab reads again for it', async () => {
  const first = await tab(40)
  const ahead = await tab(50)
  const behind = await tab(45)
  first.close()
  await settled()
  send(46, 51)
  expect(opened()).toEqual(['/stream?after=40', '/stream?after=50', '/stream?after=45'])
  expect([ahead.seen, behind.seen]).toEqual([[51], [46, 51]])
})

test('a tab that comes later learns at once that it is live', async () => {
  await tab()
  FakeEventSource.latest.open()
  expect((await tab()).statuses).toEqual(['connecting', 'live'])
})

test('each experiment has a reader, up to four; the fifth polls until one is free', async () => {
  const tabs = []
  for (const name of ['a', 'b', 'c', 'd', 'e']) tabs.push(await tab(0, `/${name}`))
  await vi.advanceTimersByTimeAsync(1000)
  expect(opened()).toEqual(['/a?after=0', '/b?after=0', '/c?after=0', '/d?after=0'])
  expect(tabs.map(({ statuses }) => statuses.at(-1))).toEqual([...Array<string>(4).fill('connecting'), 'polling'])
  tabs[1]?.close()
  await settled()
  expect(opened().at(-1)).toBe('/e?after=0')
})

test('a tab that waited for a place and closes takes none', async () => {
  const tabs = []
  for (const name of ['a', 'b', 'c', 'd', 'e']) tabs.push(await tab(0, `/${name}`))
  tabs[4]?.close()
  tabs[0]?.close()
  await vi.advanceTimersByTimeAsync(5000)
  expect(opened()).toHaveLength(4)
  expect(open()).toHaveLength(3)
})

test('a reader that is asleep is replaced, and follows when it wakes', async () => {
  const asleep = await tab()
  FakeEventSource.latest.open()
  const wake = sleep()
  const second = await tab()
  await vi.advanceTimersByTimeAsync(5000)
  wake()
  expect(open().map(({ url }) => url)).toEqual(['/stream?after=40'])
  send(41)
  expect([asleep.seen, second.seen]).toEqual([[41], [41]])
})

test('closing all ends all', async () => {
  const tabs = [await tab(), await tab()]
  for (const { close } of tabs) close()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(opened()).toHaveLength(1)
  expect(open()).toHaveLength(0)
})
