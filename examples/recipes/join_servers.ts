// Joins two servers: where people are, from the graph of `memory`; which time a meeting has there, from `time`.
const time = input?.time ?? "15:00";
const { entities } = await tools.memory.search_nodes({ query: "time zone:" });

const people = entities.flatMap(({ name, observations }) =>
  observations.flatMap((observation) => {
    const zone = /^time zone: (\S+)$/.exec(observation)?.[1];
    return zone === undefined ? [] : [{ name, zone }];
  })
);

// One call for each time zone, not for each person.
const zones = [...new Set(people.map(({ zone }) => zone))];
const answers = await Promise.all(
  zones.map((zone) => tools.time.convert_time({ source_timezone: "UTC", time, target_timezone: zone })),
);
const local = new Map(zones.map((zone, index) => [zone, answers[index].target.datetime.slice(11, 16)]));
return people.map(({ name, zone }) => ({ name, zone, time: local.get(zone) }));
