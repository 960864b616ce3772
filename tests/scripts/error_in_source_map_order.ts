enum Level { Low, High }
interface Shape { level: Level }

function check(shape: Shape) {
  if (shape.level === Level.High) {
    throw new TypeError("too high");
  }
}

const shapes: Shape[] = [{ level: Level.Low }, { level: Level.High }];
shapes.forEach((shape) => check(shape));
