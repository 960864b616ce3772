import logging

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
logging.getLogger("script").info("rows: %d", 3)
logging.debug("not shown")
try:
    {}["missing"]
except KeyError:
    logging.exception("failed")
